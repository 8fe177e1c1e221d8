# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Decides from the journals of all devices whether any message was lost, duplicated, reordered or invented."""

from clients.duplex import Journal

LIMIT = 10


def violations(journals: list[Journal]) -> list[str]:
    """Returns the violations of the guarantees, at most a few of each kind."""
    found: list[str] = []
    senders = {journal.uid: journal for journal in journals if journal.sends}
    for journal in journals:
        who = f"{journal.uid}/{journal.device}"
        found += [f"{who}: {text}" for text in journal.complaints]
        found += _inbox(journal, who)
        found += _messages(journal, senders, who)
        found += _conversation(journal, who)
    return found


def _inbox(journal: Journal, who: str) -> list[str]:
    """Checks that the seqs begin at 1 and have no holes. Each seq has one message, and each message has one seq."""
    found: list[str] = []
    by_seq: dict[int, str] = {}
    for seq, message_id, *_ in journal.taken:
        if by_seq.setdefault(seq, message_id) != message_id:
            found.append(f"{who}: seq {seq} is two messages")
    if journal.sends:
        for number, (message_id, _, seq) in journal.acknowledged.items():
            if by_seq.setdefault(seq, message_id) != message_id:
                found.append(f"{who}: seq {seq} is in the receipt of {number} and in another message")
    holes = [seq for seq in range(1, max(by_seq, default=0) + 1) if seq not in by_seq]
    if holes:
        found.append(f"{who}: {len(holes)} holes, the first at seq {holes[0]} of {max(by_seq)}")
    if len(set(by_seq.values())) != len(by_seq):
        found.append(f"{who}: {len(by_seq) - len(set(by_seq.values()))} messages have two seqs")
    return found[:LIMIT]


def _messages(journal: Journal, senders: dict[int, Journal], who: str) -> list[str]:
    """Checks that every acknowledged message to this account arrived exactly once, in its author's order, and with its
    id."""
    found: list[str] = []
    authors: dict[int, list[tuple[int, str]]] = {}
    for _, message_id, author, number, _, own in journal.taken:
        if own != (author == journal.uid):
            found.append(f"{who}: message {message_id} is marked own={own}, its author is {author}")
        authors.setdefault(author, []).append((number, message_id))
    expected = [uid for uid, sender in senders.items() if sender.acknowledged and _reads(journal, sender)]
    for author in set(authors) | set(expected):
        if author not in senders:
            found.append(f"{who}: messages of {author}, who never sent any")
            continue
        got = authors.get(author, [])
        own_device = author == journal.uid and journal.sends
        numbers = [number for number, _ in got]
        for before, after in zip(numbers, numbers[1:]):
            if after == before:
                found.append(f"{who}: message {after} of {author} twice")
            elif after < before:
                found.append(f"{who}: message {after} of {author} after {before}")
            elif after > before + 1 and not own_device:
                found.append(f"{who}: message {before + 1} of {author} is missing before {after}")
        ids = dict(got)
        for number, (message_id, _, _) in senders[author].acknowledged.items():
            if number in ids and ids[number] != message_id:
                found.append(f"{who}: message {number} of {author} arrived as {ids[number]}, acknowledged as {message_id}")
            if number not in ids and not own_device:
                found.append(f"{who}: message {number} of {author} was acknowledged as {message_id} and never arrived")
    return found[:LIMIT]


def _reads(journal: Journal, sender: Journal) -> bool:
    """Whether this device gets the messages of `sender`: it belongs to the sender's peer, or to the sender's own
    account."""
    return journal.uid in (sender.peer, sender.uid)


def _conversation(journal: Journal, who: str) -> list[str]:
    """Checks that conversation seqs increase with the inbox seqs, and that they have no holes together with the
    receipts."""
    seqs = {conversation_seq for *_, conversation_seq, _ in journal.taken}
    if journal.sends:
        seqs |= {conversation_seq for _, conversation_seq, _ in journal.acknowledged.values()}
    holes = max(seqs, default=0) - len(seqs)
    found = [f"{who}: {holes} holes in the conversation"] if holes else []
    ordered = [entry[4] for entry in sorted(journal.taken)]
    if ordered != sorted(ordered):
        found.append(f"{who}: the conversation's order is not the inbox's")
    return found
