# Hermes
# SPDX-License-Identifier: Apache-2.0
"""Decides from the journals of all devices whether anything was lost, doubled, reordered or invented."""

from clients.duplex import Journal

LIMIT = 10


def violations(journals: list[Journal]) -> list[str]:
    """Every broken promise, at most a few of each kind; empty if all was kept."""
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
    """Seqs from 1 without holes; each seq one message, each message one seq."""
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
    """Every acknowledged message of every author that writes to this account, exactly once, in order, with its id."""
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
    """Whether this device gets what that one sends: it belongs to the peer, or is another device of the author."""
    return journal.uid in (sender.peer, sender.uid)


def _conversation(journal: Journal, who: str) -> list[str]:
    """Conversation seqs grow with the inbox seqs, and are contiguous with what the receipts say."""
    seqs = {conversation_seq for *_, conversation_seq, _ in journal.taken}
    if journal.sends:
        seqs |= {conversation_seq for _, conversation_seq, _ in journal.acknowledged.values()}
    holes = max(seqs, default=0) - len(seqs)
    found = [f"{who}: {holes} holes in the conversation"] if holes else []
    ordered = [entry[4] for entry in sorted(journal.taken)]
    if ordered != sorted(ordered):
        found.append(f"{who}: the conversation's order is not the inbox's")
    return found
