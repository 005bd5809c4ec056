"""Sentences in which one word belongs to another: pronouns and whom they mean, verbs and subjects, brackets."""

from __future__ import annotations

from dataclasses import dataclass

OPENING = {")": "(", "]": "[", "}": "{"}

PRONOUNS = (  # *from* and +to+
    "the +animal+ did not cross the street because *it* was too tired",
    "the +girl+ lost the ball when *she* ran home",
    "the +boy+ told his mother that *he* was hungry",
    "the +trophy+ did not fit in the box because *it* was too big",
    "the dog barked at the +man+ until *he* left the garden",
    "the +king+ thanked the people before *he* left the city",
    "the teacher praised the +students+ because *they* worked hard",
    "the +woman+ sold the car after *she* bought a bike",
    "the +cup+ fell from the table and *it* broke",
    "the farmers watered the +fields+ because *they* were dry",
    "the +queen+ wrote a letter while *she* waited",
    "the +train+ left the station before *it* stopped again",
)
VERBS = (
    "the +keys+ to the old cabinet *are* lost",
    "the +boy+ with the red shoes *runs* fast",
    "the +dogs+ near the house *bark* loudly",
    "the +book+ on the tables *was* old",
    "the +flowers+ in the garden *grow* quickly",
    "the +man+ behind the cars *speaks* slowly",
    "the +children+ of the teacher *sing* well",
    "the +cat+ under the chairs *sleeps* now",
    "the +windows+ of the church *break* easily",
    "the +ship+ with the white sails *moves* slowly",
    "the +birds+ above the river *fly* south",
    "the +letter+ from the brothers *arrived* late",
)
BRACKETS = (
    "print ( sum ( [ a , b , c ] ) )",
    "x = f ( a , g ( b , h ( c ) ) )",
    "d = { 1 : ( 2 , 3 ) , 4 : [ 5 , 6 ] }",
    "if ( a and ( b or c ) ) :",
    "y = [ x for x in range ( 10 ) ]",
    "call ( one ( two ) , [ three , four ] )",
    "z = ( a + b ) * ( c - d )",
    "items = { k : [ v , ( w , u ) ] }",
    "m [ i ] [ j ] = n ( k [ l ] )",
    "assert f ( ( 1 , 2 ) , [ 3 ] ) == ( 4 , 5 )",
    "t = ( ( a , b ) , ( c , d ) )",
    "return max ( len ( s ) , min ( p , q [ 0 ] ) )",
)


@dataclass(frozen=True)
class Sentence:
    """A text, and its links: the characters (from, to) at which two words begin that belong together."""

    text: str
    links: tuple[tuple[int, int], ...]


def marked(line: str) -> Sentence:
    """The sentence of a line in which *from* and +to+ are marked.

    >>> marked("a +cup+ and *it*")
    Sentence(text='a cup and it', links=((10, 2),))
    """
    plain = line.replace("*", "").replace("+", "")
    start, end = (line[: line.index(mark)].replace("*", "").replace("+", "") for mark in "*+")
    return Sentence(plain, ((len(start), len(end)),))


def bracketed(line: str) -> Sentence:
    """The sentence in which every closing bracket belongs to the one that it closes.

    >>> bracketed("f ( [ a ] )").links
    ((8, 4), (10, 2))
    """
    waiting: list[int] = []
    links = []
    for at, sign in enumerate(line):
        if sign in OPENING.values():
            waiting.append(at)
        elif sign in OPENING:
            links.append((at, waiting.pop()))
    return Sentence(line, tuple(links))
