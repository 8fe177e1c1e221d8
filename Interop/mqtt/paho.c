/* Hermes
 * SPDX-License-Identifier: Apache-2.0
 *
 * Runs checks with Eclipse Paho C: paho SCENARIO VERSION URL TOPIC [AUTHORITY]. VERSION is 4 (for 3.1.1) or 5.
 * Exits with 0 if the check succeeds. Otherwise, exits with 1 and prints a line on standard error.
 */
#include <MQTTClient.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE 10000

static int version;
static const char *url, *root, *authority;

static void fail(const char *format, ...) {
    va_list more;
    va_start(more, format);
    vfprintf(stderr, format, more);
    va_end(more);
    fputc('\n', stderr);
    exit(1);
}

static char *name(const char *tail) {
    char *made = malloc(strlen(root) + strlen(tail) + 2);
    sprintf(made, "%s/%s", root, tail);
    return made;
}

/* Connects. *present is set to whether the server had a session. Paho reports this only for 3.1.1. */
static MQTTClient connected(const char *id, int clean, int expiry, const char *will, int *present) {
    MQTTClient client;
    MQTTClient_createOptions create = MQTTClient_createOptions_initializer;
    create.MQTTVersion = version;
    int code = MQTTClient_createWithOptions(&client, url, id, MQTTCLIENT_PERSISTENCE_NONE, NULL, &create);
    if (code != MQTTCLIENT_SUCCESS) fail("create: %d", code);
    MQTTClient_connectOptions five = MQTTClient_connectOptions_initializer5;
    MQTTClient_connectOptions four = MQTTClient_connectOptions_initializer;
    MQTTClient_connectOptions options = version == 5 ? five : four;
    MQTTClient_SSLOptions tls = MQTTClient_SSLOptions_initializer;
    MQTTClient_willOptions last = MQTTClient_willOptions_initializer;
    options.MQTTVersion = version;
    options.keepAliveInterval = 30;
    options.maxInflightMessages = 100;
    if (version == 5) options.cleanstart = clean;
    else options.cleansession = clean;
    if (authority) {
        tls.trustStore = authority;
        tls.verify = 1;
        options.ssl = &tls;
    }
    if (will) {
        last.topicName = will;
        last.message = "lost";
        last.qos = 1;
        options.will = &last;
    }
    if (version == 5) {
        MQTTProperties properties = MQTTProperties_initializer;
        MQTTProperty property;
        if (expiry) {
            property.identifier = MQTTPROPERTY_CODE_SESSION_EXPIRY_INTERVAL;
            property.value.integer4 = expiry;
            MQTTProperties_add(&properties, &property);
        }
        MQTTResponse answer = MQTTClient_connect5(client, &options, &properties, NULL);
        if (answer.reasonCode != MQTTREASONCODE_SUCCESS) fail("connect: %d", answer.reasonCode);
        MQTTProperties_free(&properties);
    } else if ((code = MQTTClient_connect(client, &options)) != MQTTCLIENT_SUCCESS) {
        fail("connect: %d", code);
    }
    if (present) *present = options.returned.sessionPresent;
    return client;
}

static void subscribe(MQTTClient client, const char *filter, int qos) {
    int code = version == 5 ? (int)MQTTClient_subscribe5(client, filter, qos, NULL, NULL).reasonCode
                            : MQTTClient_subscribe(client, filter, qos);
    if (version == 5 ? code != qos : code != MQTTCLIENT_SUCCESS) fail("subscribe to %s: %d", filter, code);
}

static void publish(MQTTClient client, const char *topic, const void *payload, int length, int qos, int retain,
                    MQTTProperties *properties, MQTTClient_deliveryToken *token) {
    int code;
    MQTTClient_message message = MQTTClient_message_initializer;
    message.payload = (void *)payload;
    message.payloadlen = length;
    message.qos = qos;
    message.retained = retain;
    if (properties) message.properties = *properties;
    if (version == 5) {
        MQTTResponse answer = MQTTClient_publishMessage5(client, topic, &message, token);
        code = answer.reasonCode;
    } else {
        code = MQTTClient_publishMessage(client, topic, &message, token);
    }
    if (code != MQTTCLIENT_SUCCESS) fail("publish: %d", code);
}

static void text(MQTTClient client, const char *topic, const char *payload, int qos, int retain) {
    MQTTClient_deliveryToken token;
    publish(client, topic, payload, (int)strlen(payload), qos, retain, NULL, &token);
    if (qos && MQTTClient_waitForCompletion(client, token, PATIENCE) != MQTTCLIENT_SUCCESS) fail("no acknowledgement");
}

/* Returns the next message. The caller frees it. */
static MQTTClient_message *next(MQTTClient client, const char *topic, const char *payload, int qos) {
    char *found = NULL;
    int length;
    MQTTClient_message *message = NULL;
    int code = MQTTClient_receive(client, &found, &length, &message, PATIENCE);
    if ((code != MQTTCLIENT_SUCCESS && code != MQTTCLIENT_TOPICNAME_TRUNCATED) || !message) fail("nothing came (%d), expected %s", code, payload);
    if (topic && strcmp(found, topic)) fail("it came on %s, expected %s", found, topic);
    if (payload && ((int)strlen(payload) != message->payloadlen || memcmp(payload, message->payload, message->payloadlen)))
        fail("%.*s came, expected %s", message->payloadlen, (char *)message->payload, payload);
    if (qos >= 0 && message->qos != qos) fail("QoS %d, expected %d", message->qos, qos);
    MQTTClient_free(found);
    return message;
}

static void take(MQTTClient client, const char *topic, const char *payload, int qos) {
    MQTTClient_message *message = next(client, topic, payload, qos);
    MQTTClient_freeMessage(&message);
}

static void done(MQTTClient client) {
    if (version == 5) MQTTClient_disconnect5(client, 1000, MQTTREASONCODE_SUCCESS, NULL);
    else MQTTClient_disconnect(client, 1000);
    MQTTClient_destroy(&client);
}

static void qualities(void) {
    MQTTClient a = connected(name("a"), 1, 0, NULL, NULL), b = connected(name("b"), 1, 0, NULL, NULL);
    char payload[32];
    /* Over WebSocket, Paho loses its position in a frame that arrives in several reads. If the socket accepts only a
       part of a publication, the rest stays masked (paho.mqtt.c #1592). Payloads over WebSocket are therefore small
       enough that a frame fits into one read and one write. */
    static char large[300000], published[sizeof large];
    int size = strncmp(url, "ws", 2) ? (int)sizeof large : 4000;
    memset(large, 7, sizeof large);
    subscribe(b, name("#"), 2);
    for (int qos = 0; qos <= 2; qos++) {
        MQTTClient_deliveryToken token = 0;
        for (int n = 0; n < 200; n++) { /* not one by one, because each wait takes 0.1 s in Paho */
            sprintf(payload, "%d-%d", qos, n);
            publish(a, name("q"), payload, (int)strlen(payload), qos, 0, NULL, &token);
        }
        if (qos && MQTTClient_waitForCompletion(a, token, PATIENCE) != MQTTCLIENT_SUCCESS) fail("no acknowledgement");
        for (int n = 0; n < 200; n++) {
            sprintf(payload, "%d-%d", qos, n);
            take(b, name("q"), payload, qos);
        }
        memcpy(published, large, size);
        publish(a, name("large"), published, size, qos, 0, NULL, &token);
        MQTTClient_message *message = next(b, name("large"), NULL, qos);
        if (message->payloadlen != size || memcmp(message->payload, large, size)) fail("%d bytes came otherwise", size);
        MQTTClient_freeMessage(&message);
    }
    done(a);
    done(b);
}

static void retained(void) {
    MQTTClient a = connected(name("a"), 1, 0, NULL, NULL), b = connected(name("b"), 1, 0, NULL, NULL);
    text(a, name("kept"), "old", 1, 1);
    text(a, name("kept"), "new", 1, 1);
    subscribe(b, name("kept"), 1);
    MQTTClient_message *message = next(b, name("kept"), "new", 1);
    if (!message->retained) fail("the retained flag is missing");
    MQTTClient_freeMessage(&message);
    text(a, name("kept"), "", 1, 1);
    take(b, name("kept"), "", 1);
    MQTTClient c = connected(name("c"), 1, 0, NULL, NULL);
    subscribe(c, name("#"), 1);
    text(a, name("live"), "live", 1, 0);
    take(c, name("live"), "live", 1);
    done(a);
    done(b);
    done(c);
}

static void session(void) {
    int present = -1;
    char payload[32];
    MQTTClient a = connected(name("a"), 1, 0, NULL, NULL), b = connected(name("b"), 0, 600, NULL, &present);
    if (version == 4 && present != 0) fail("a session was there before");
    subscribe(b, name("#"), 2);
    done(b);
    MQTTClient_deliveryToken token = 0;
    for (int n = 0; n < 100; n++) {
        sprintf(payload, "%d", n);
        publish(a, name("q"), payload, (int)strlen(payload), 2, 0, NULL, &token);
    }
    if (MQTTClient_waitForCompletion(a, token, PATIENCE) != MQTTCLIENT_SUCCESS) fail("no acknowledgement");
    b = connected(name("b"), 0, 600, NULL, &present);
    if (version == 4 && present != 1) fail("the session is not there any more");
    for (int n = 0; n < 100; n++) {
        sprintf(payload, "%d", n);
        take(b, name("q"), payload, 2);
    }
    done(a);
    done(b);
}

static void will(void) {
    MQTTClient b = connected(name("b"), 1, 0, NULL, NULL);
    subscribe(b, name("will"), 1);
    pid_t child = fork(); /* the child process ends without DISCONNECT */
    if (child == 0) {
        char self[4096];
        ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
        if (length < 0) _exit(1);
        self[length] = 0;
        char number[8];
        sprintf(number, "%d", version);
        execl(self, self, "dying", number, url, root, authority, (char *)NULL);
        _exit(1);
    }
    take(b, name("will"), "lost", 1);
    done(b);
}

static void dying(void) {
    connected(name("dying"), 1, 0, name("will"), NULL);
    _exit(0);
}

static void properties(void) {
    MQTTClient a = connected(name("a"), 1, 0, NULL, NULL), b = connected(name("b"), 1, 0, NULL, NULL);
    subscribe(b, name("p"), 2);
    MQTTProperties sent = MQTTProperties_initializer;
    MQTTProperty property;
    for (int n = 0; n < 3; n++) {
        property.identifier = MQTTPROPERTY_CODE_USER_PROPERTY;
        property.value.data.data = "key";
        property.value.data.len = 3;
        property.value.value.data = n == 0 ? "one" : n == 1 ? "two" : "six";
        property.value.value.len = 3;
        MQTTProperties_add(&sent, &property);
    }
    property.identifier = MQTTPROPERTY_CODE_CONTENT_TYPE;
    property.value.data.data = "text/plain";
    property.value.data.len = 10;
    MQTTProperties_add(&sent, &property);
    property.identifier = MQTTPROPERTY_CODE_MESSAGE_EXPIRY_INTERVAL;
    property.value.integer4 = 60;
    MQTTProperties_add(&sent, &property);
    for (int qos = 0; qos <= 2; qos++) {
        MQTTClient_deliveryToken token;
        publish(a, name("p"), "x", 1, qos, 0, &sent, &token);
        MQTTClient_message *message = next(b, name("p"), "x", qos);
        MQTTProperties *found = &message->properties;
        const char *order[] = {"one", "two", "six"};
        for (int n = 0; n < 3; n++) {
            MQTTProperty *one = MQTTProperties_getPropertyAt(found, MQTTPROPERTY_CODE_USER_PROPERTY, n);
            if (!one || one->value.value.len != 3 || memcmp(one->value.value.data, order[n], 3)) fail("user property %d", n);
        }
        if (!MQTTProperties_hasProperty(found, MQTTPROPERTY_CODE_CONTENT_TYPE)) fail("no content type");
        int left = (int)MQTTProperties_getNumericValue(found, MQTTPROPERTY_CODE_MESSAGE_EXPIRY_INTERVAL);
        if (left < 58 || left > 60) fail("expiry %d", left);
        MQTTClient_freeMessage(&message);
    }
    done(a);
    done(b);
}

int main(int count, char **words) {
    if (count < 5) fail("usage: paho SCENARIO VERSION URL TOPIC [AUTHORITY]");
    version = atoi(words[2]);
    url = words[3];
    root = words[4];
    authority = count > 5 ? words[5] : NULL;
    struct { const char *name; void (*body)(void); } all[] = {
        {"qualities", qualities}, {"retained", retained}, {"session", session},
        {"will", will}, {"dying", dying}, {"properties", properties}};
    MQTTClient_init_options initial = MQTTClient_init_options_initializer;
    initial.do_openssl_init = 1;
    MQTTClient_global_init(&initial);
    for (size_t n = 0; n < sizeof all / sizeof *all; n++) {
        if (!strcmp(all[n].name, words[1])) {
            all[n].body();
            return 0;
        }
    }
    fail("there is no scenario %s", words[1]);
}
