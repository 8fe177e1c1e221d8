// Hermes
// SPDX-License-Identifier: Apache-2.0

import com.google.protobuf.ByteString;
import hermes.v1.AccountOuterClass.Authenticate;
import hermes.v1.AccountOuterClass.DeviceDescription;
import hermes.v1.AccountOuterClass.PasswordCredential;
import hermes.v1.AccountOuterClass.Register;
import hermes.v1.AccountOuterClass.Session;
import hermes.v1.Inbox.Acknowledge;
import hermes.v1.Inbox.Event;
import hermes.v1.MessageOuterClass.Content;
import hermes.v1.MessageOuterClass.Conversation;
import hermes.v1.MessageOuterClass.Receipt;
import hermes.v1.MessageOuterClass.Send;
import hermes.v1.PacketOuterClass.Packet;
import hermes.v1.PacketOuterClass.Ping;
import hermes.v1.PacketOuterClass.Result;
import io.netty.bootstrap.Bootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.handler.codec.protobuf.ProtobufDecoder;
import io.netty.handler.codec.protobuf.ProtobufEncoder;
import io.netty.handler.codec.protobuf.ProtobufVarint32FrameDecoder;
import io.netty.handler.codec.protobuf.ProtobufVarint32LengthFieldPrepender;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A client of the Delimited port that uses only Netty's own codecs. A Java developer could write it in an afternoon.
 *
 * Usage: NettyClient HOST PORT. Prints each check and a closing line. Exits with 1 if a check failed.
 */
public final class NettyClient {
    private static final String PASSWORD = "correct horse";
    private static final int MESSAGES = 1000;
    private static int passed = 0;
    private static int failed = 0;

    /** One connection. Answers are found by their ids, and events are kept in order. */
    private static final class Client extends SimpleChannelInboundHandler<Packet> {
        private final Map<Long, LinkedBlockingQueue<Packet>> answers = new ConcurrentHashMap<>();
        private final LinkedBlockingQueue<Event> events = new LinkedBlockingQueue<>();
        private final AtomicLong nextID = new AtomicLong();
        private volatile Channel channel;

        @Override
        protected void channelRead0(ChannelHandlerContext context, Packet packet) {
            if (packet.getBodyCase() == Packet.BodyCase.EVENT) {
                events.add(packet.getEvent());
            } else if (packet.getId() != 0) {
                answers.computeIfAbsent(packet.getId(), id -> new LinkedBlockingQueue<>()).add(packet);
            }
        }

        long put(Packet.Builder packet) {
            long id = nextID.incrementAndGet();
            answers.computeIfAbsent(id, ignored -> new LinkedBlockingQueue<>());
            channel.write(packet.setId(id).build());
            return id;
        }

        Packet answer(long id) throws Exception {
            channel.flush();
            Packet packet = answers.get(id).poll(20, TimeUnit.SECONDS);
            require(packet != null, "no answer to " + id);
            answers.remove(id);
            return packet;
        }

        Result ask(Packet.Builder packet) throws Exception {
            return answer(put(packet)).getResult();
        }

        Event event() throws Exception {
            Event event = events.poll(20, TimeUnit.SECONDS);
            require(event != null, "no event came");
            return event;
        }
    }

    private interface Body {
        void run() throws Exception;
    }

    private static void check(String name, Body body) {
        try {
            body.run();
            passed++;
            System.out.println("ok    Netty: " + name);
        } catch (Exception | AssertionError problem) {
            failed++;
            System.out.println("FAIL  Netty: " + name + ": " + problem);
        }
    }

    private static void require(boolean condition, String message) {
        if (!condition) {
            throw new AssertionError(message);
        }
    }

    private static Client connect(EventLoopGroup group, String host, int port) throws Exception {
        Client client = new Client();
        Bootstrap bootstrap = new Bootstrap().group(group).channel(NioSocketChannel.class)
            .option(ChannelOption.TCP_NODELAY, true)
            .handler(new ChannelInitializer<SocketChannel>() {
                @Override
                protected void initChannel(SocketChannel channel) {
                    channel.pipeline()
                        .addLast(new ProtobufVarint32FrameDecoder())
                        .addLast(new ProtobufDecoder(Packet.getDefaultInstance()))
                        .addLast(new ProtobufVarint32LengthFieldPrepender())
                        .addLast(new ProtobufEncoder())
                        .addLast(client);
                }
            });
        client.channel = bootstrap.connect(host, port).sync().channel();
        return client;
    }

    private static DeviceDescription device(String id) {
        return DeviceDescription.newBuilder().setId(id).setPlatform("Netty").build();
    }

    private static Packet.Builder register(String name) {
        return Packet.newBuilder().setRegister(
            Register.newBuilder().setNickName(name).setPassword(PASSWORD).setDevice(device("java")));
    }

    private static Packet.Builder login(String name, String password) {
        return Packet.newBuilder().setAuthenticate(Authenticate.newBuilder()
            .setPassword(PasswordCredential.newBuilder().setNickName(name).setPassword(password))
            .setDevice(device("java")));
    }

    private static Packet.Builder send(int uid, String clientID, Content content) {
        return Packet.newBuilder().setSend(Send.newBuilder()
            .setTo(Conversation.newBuilder().setUid(uid)).setClientId(clientID).setContent(content));
    }

    private static Content text(String text) {
        return Content.newBuilder().setText(text).build();
    }

    public static void main(String[] arguments) {
        try {
            run(arguments);
        } catch (Exception problem) {
            failed++;
            System.out.println("FAIL  Netty: " + problem);
        }
        System.out.println(passed + " passed, " + failed + " failed");
        System.exit(failed == 0 ? 0 : 1);
    }

    private static void run(String[] arguments) throws Exception {
        String host = arguments[0];
        int port = Integer.parseInt(arguments[1]);
        String suffix = "-" + UUID.randomUUID().toString().substring(0, 8);
        String annName = "java-ann" + suffix;
        String bobName = "java-bob" + suffix;
        EventLoopGroup group = new NioEventLoopGroup(2);
        Client ann = connect(group, host, port);
        Client bob = connect(group, host, port);
        Session[] sessions = new Session[2];

        check("register", () -> {
            sessions[0] = ann.ask(register(annName)).getSession();
            sessions[1] = bob.ask(register(bobName)).getSession();
            require(sessions[0].getUid() > 0 && sessions[1].getUid() > 0, "no uid");
            require(!sessions[0].getToken().isEmpty(), "no token");
        });
        check("ping", () -> {
            Packet pong = ann.answer(ann.put(Packet.newBuilder().setPing(Ping.newBuilder().setClientTimeMs(42))));
            require(pong.getPong().getClientTimeMs() == 42, "not my time: " + pong);
        });
        check("login by password, by token, and a wrong password", () -> {
            Client other = connect(group, host, port);
            Session again = other.ask(login(annName, PASSWORD).setAuthenticate(
                login(annName, PASSWORD).getAuthenticate().toBuilder().setDevice(device("other")))).getSession();
            require(again.getUid() == sessions[0].getUid(), "another uid");
            Client third = connect(group, host, port);
            Session byToken = third.ask(Packet.newBuilder().setAuthenticate(
                Authenticate.newBuilder().setToken(again.getToken()).setDevice(device("other")))).getSession();
            require(byToken.getUid() == sessions[0].getUid(), "another uid by token");
            Result wrong = connect(group, host, port).ask(login(annName, "wrong password"));
            require(wrong.getError().getCode() == 1003, "not 1003: " + wrong);
        });
        check("send and receive, both ways, unknown fields kept", () -> {
            Content content = Content.newBuilder().setCustom(
                Content.Custom.newBuilder().setType("java").setData(ByteString.copyFrom(new byte[] {0, -1}))).build();
            Receipt receipt = ann.ask(send(sessions[1].getUid(), "j-1", content)).getReceipt();
            Event event = bob.event();
            require(event.getMessage().getId().equals(receipt.getMessageId()), "another id");
            require(event.getMessage().getContent().equals(content), "another content: " + event);
            require(event.getMessage().getFromUid() == sessions[0].getUid(), "another sender");
            bob.ask(send(sessions[0].getUid(), "j-1", text("你好"))).getReceipt();
            require(ann.event().getMessage().getContent().getText().equals("你好"), "another text");
        });
        check(MESSAGES + " messages pipelined", () -> {
            List<Long> ids = new ArrayList<>();
            for (int n = 0; n < MESSAGES; n++) {
                ids.add(ann.put(send(sessions[1].getUid(), "p-" + n, text("n " + n))));
            }
            List<String> sent = new ArrayList<>();
            for (long id : ids) {
                Result result = ann.answer(id).getResult();
                require(!result.hasError(), "refused: " + result.getError());
                sent.add(result.getReceipt().getMessageId());
            }
            Set<String> seen = new HashSet<>();
            long last = 0;
            for (int n = 0; n < MESSAGES; n++) {
                Event event = bob.event();
                require(event.getMessage().getId().equals(sent.get(n)), "message " + n + " is another one");
                require(seen.add(event.getMessage().getId()), "twice");
                require(last == 0 || event.getSeq() == last + 1, "seq " + event.getSeq() + " after " + last);
                last = event.getSeq();
            }
            Result done = bob.ask(Packet.newBuilder().setAcknowledge(Acknowledge.newBuilder().setUpToSeq(last)));
            require(!done.hasError(), "acknowledge was refused: " + done.getError());
        });

        group.shutdownGracefully(0, 1, TimeUnit.SECONDS).sync();
    }
}
