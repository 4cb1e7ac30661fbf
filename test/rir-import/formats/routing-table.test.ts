/** Routing tables as text: what is taken, what is left out and why, and what is no route. */
import { describe, expect, it } from "vitest";
import { prefixText } from "#coordinator/subnets/routing-table";
import { looksLikeRoute, openRoutingTableReader } from "#rir-import/formats/routing-table";
import { recorded } from "../recorded.ts";

interface Route {
  readonly family: 4 | 6;
  readonly firstBlock: number;
  readonly length: number;
  readonly asNumber: number;
  readonly peers: number;
  readonly line: number;
}

function read(text: string, pieceBytes?: number) {
  const { records, ...rest } = recorded(openRoutingTableReader, Buffer.from(text), pieceBytes);
  const routes = (records as readonly Route[]).map(
    ({ family, firstBlock, length, asNumber, peers, line }) =>
      `${line} ${prefixText(family, firstBlock, length)} AS${asNumber} ${peers}`,
  );
  return { routes, ...rest };
}

const ris = `% RIPE RIS
%
% origin, prefix, seen by

3333\t193.0.0.0/21\t371
13335\t1.0.0.0/24\t10
64500\t193.0.0.0/21\t371
{3333,1103}\t193.0.8.0/24\t300
3333\t193.0.10.0/23\t9
1\t0.0.0.0/0\t300
1\t10.0.0.0/8\t300
1\t8.8.8.8/32\t300
25152\t2001:7fd::/32\t350
25152\t2001:7fd:1::/64\t350
25152\tfd00::/32\t350
25152\t2001:db8::/32\t350
4294967295\t193.0.16.0/24\t371
`;

describe("RIPE's RIS dump", () => {
  it("gives prefix, origin and peers, and leaves out what is no route of the Internet's core", () => {
    const { routes, ignored, malformed } = read(ris);

    expect(routes).toEqual([
      "5 193.0.0.0/21 AS3333 371",
      "6 1.0.0.0/24 AS13335 10",
      "13 2001:7fd::/32 AS25152 350",
    ]);
    expect(ignored).toEqual({
      "a reserved or private AS": 2,
      "its origin is an AS set": 1,
      "seen by fewer than 10 peers": 1,
      "wider than /8": 1,
      "special-purpose space": 3,
      "more specific than /24": 1,
      "more specific than /48": 1,
    });
    expect(malformed).toEqual([]);
  });

  it.each([1, 7, 64])("gives the same in pieces of %i bytes, and with CR LF", (bytes) => {
    expect(read(ris, bytes)).toEqual(read(ris));
    expect(read(ris.replaceAll("\n", "\r\n"), bytes).routes).toEqual(read(ris).routes);
  });

  it("names the line and the value of what is no route", () => {
    const { routes, malformed } = read(
      "3333\t193.0.0.0/21\t371\n3333\t193.0.0.1/21\t371\nhello\n5000000000\t193.0.0.0/21\t3000\n3333\t193.0.0.0/33\t99\n3333 193.0.0.0/21 99 more\n",
    );

    expect(routes).toHaveLength(1);
    expect(malformed).toEqual([
      {
        line: 2,
        reason: "bits behind the prefix length are set: 193.0.0.0/21?",
        value: "3333\t193.0.0.1/21\t371",
      },
      { line: 3, reason: "neither “origin prefix peers” nor “prefix origin”", value: "hello" },
      { line: 4, reason: "not an AS number", value: "5000000000\t193.0.0.0/21\t3000" },
      { line: 5, reason: "not a prefix", value: "3333\t193.0.0.0/33\t99" },
      {
        line: 6,
        reason: "neither “origin prefix peers” nor “prefix origin”",
        value: "3333 193.0.0.0/21 99 more",
      },
    ]);
  });

  it("does not keep a line of 50 MB", () => {
    const { routes, malformed } = read(`${"x".repeat(50_000_000)}\n3333\t193.0.0.0/21\t371\n`, 65_536);

    expect(routes).toEqual(["2 193.0.0.0/21 AS3333 371"]);
    expect(malformed).toMatchObject([{ line: 1, reason: "a line longer than 65,536 bytes" }]);
  });
});

it("takes a plain table of prefixes and origins, however few see them", () => {
  expect(read("# ours\n193.0.0.0/21 AS3333\n2001:7fd::/32  25152\n").routes).toEqual([
    "2 193.0.0.0/21 AS3333 0",
    "3 2001:7fd::/32 AS25152 0",
  ]);
});

it("is told from other registry files by its first line", () => {
  const routes = [
    "3333\t193.0.0.0/21\t371",
    "{1,2} 2001:7fd::/32 4",
    "193.0.0.0/21 AS3333",
    "2001:7fd::/32 25152",
  ];
  const others = [
    "inetnum: 193.0.0.0 - 193.0.7.255",
    "2|ripencc|20260101|3|",
    "route: 193.0.0.0/21",
    "a/1 2",
    "1.0.0.0/24",
  ];

  expect(routes.map(looksLikeRoute)).toEqual(routes.map(() => true));
  expect(others.map(looksLikeRoute)).toEqual(others.map(() => false));
});
