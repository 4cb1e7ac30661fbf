/**
 * Files arrive in pieces, cut anywhere, in memory that is used again: random texts of every format, whole and in
 * random pieces, give the same records, reasons, lines and counts.
 */
import { describe, expect, it } from "vitest";
import { seededRandom } from "#core/random";
import { openArinXmlReader } from "#rir-import/formats/arin-xml";
import { openDelegatedReader } from "#rir-import/formats/delegated";
import type { OpenReader } from "#rir-import/formats/record";
import { openRpslReader } from "#rir-import/formats/rpsl";
import { recorded } from "../recorded.ts";

const seed = 20_261;
const random = seededRandom(seed);
const below = (limit: number) => Math.floor(random() * limit);
const oneOf = (texts: readonly string[]): string => texts[below(texts.length)] as string;

const rpslLine = () =>
  oneOf([
    "inetnum: 45.1.2.0 - 45.1.2.255",
    "inetnum:\t200.3.12/22 # LACNIC",
    "INETNUM : 45.9.0.0/16",
    "inet6num: 2a02:f00:1::/48",
    "inet6num: 2a02:f00:1:: -",
    " 2a02:f00:1:ffff:ffff:ffff:ffff:ffff",
    "inetnum-up: 200/8",
    "organisation: org-ex1-ripe",
    "org-name: Example \u00e9\u00e9",
    "netname: EX-NET",
    "descr: Exempl\u00c3\u00a3o # a comment",
    "+ continued",
    "\tcontinued # again",
    "org: ORG-EX1-RIPE",
    "country: nl",
    "source: RIPE # Filtered",
    "source:LACNIC",
    "owner: Exemplo S.A.",
    "ownerid: br-ex-lacnic",
    "NetHandle: NET-45-1",
    "NetRange: 45.1.0.0 - 45.1.255.255",
    "NetType: Allocated to RIPE NCC",
    "OrgID: EX-1",
    "OrgName: Example",
    "person: Somebody",
    "# comment",
    "% comment",
    "garbage without a name",
    "\u0000\u00ff\u0001",
    "remarks: a long remark that nobody needs, over and over and over again",
    "",
    "",
    "",
  ]);

const delegatedLine = () =>
  oneOf([
    "2|apnic|20260101|2|19830613|20260101|+1000",
    "apnic|*|ipv4|*|2|summary",
    "apnic|JP|ipv4|1.0.16.0|4096|20110412|allocated",
    "apnic|jp|ipv4|1.0.64.0|769|20110412|assigned|A91872ED",
    "apnic|AU|ipv6|2001:dc0::|32|20110412|allocated|A91872ED|e-stats",
    "apnic||ipv4|1.1.0.0|256||available",
    "apnic|AU|asn|173|1|20020801|allocated",
    "apnic|AU|ipv4|1.1.1.300|1|20020801|allocated",
    "apnic|AU|ipv6|2001:dc0::|200|20020801|allocated",
    "iana|ZZ|ipv4|2.0.0.0|16777216|20090901|ripencc",
    "nobody|AU|ipv4|1.0.0.0|256|20110811|allocated",
    "apnic|AU|ipv4",
    "# comment",
    "",
  ]);

const netText = () =>
  `<net>${oneOf(["", "\n", "<comment><line><![CDATA[</net>]]></line></comment>", "<!-- </net> -->"])}<handle>NET-${below(1e6)}</handle><name>${oneOf(["Exempl\u00e9", "Exempl\u00c3\u00a9", "Example"])}</name><netBlocks><netBlock><startAddress>045.001.${below(256)}.000</startAddress><endAddress>045.001.255.255</endAddress><type>${oneOf(["S", "DA", "RX"])}</type></netBlock></netBlocks><orgHandle>ex-${below(9)}</orgHandle></net>\n`;
const arinElement = () =>
  oneOf([
    netText(),
    netText(),
    "<org><handle>EX-1</handle><name>A &amp; B</name><parentOrgHandle>EX-0</parentOrgHandle></org>\n",
    "<poc><handle>P</handle><!-- </poc> --></poc>",
    "<asn><handle>AS1</handle></asn>\n",
    "<!-- <net> -->\n",
    "<net><handle>BROKEN</name></net>\n",
    "<nets></nets>",
  ]);

const times = (count: number, part: () => string, end = "") =>
  Array.from({ length: count }, () => part() + end).join("");

const formats: readonly (readonly [name: string, open: OpenReader, text: () => string])[] = [
  ["RPSL", openRpslReader, () => times(60, rpslLine, oneOf(["\n", "\r\n"]))],
  ["statistics", openDelegatedReader, () => times(40, delegatedLine, oneOf(["\n", "\r\n"]))],
  ["ARIN XML", openArinXmlReader, () => `<bulkwhois>${times(12, arinElement)}</bulkwhois>`],
];

describe.each(formats)("%s", (_name, open, text) => {
  it("in random pieces is the same as whole", () => {
    for (let round = 0; round < 400; round++) {
      const bytes = Buffer.from(text(), "latin1");

      const whole = outcome(() => recorded(open, bytes));
      const inPieces = outcome(() => recorded(reusingMemory(open), bytes, 1 + below(bytes.length)));

      expect([seed, round, inPieces]).toEqual([seed, round, whole]);
    }
  });
});

/** What was read, or what stopped it. */
function outcome(read: () => unknown): unknown {
  try {
    return read();
  } catch (error) {
    return String(error);
  }
}

/** Every piece comes in a copy that is overwritten when the reader has returned. */
function reusingMemory(open: OpenReader): OpenReader {
  return (file, sink) => {
    const reader = open(file, sink);
    return {
      push: (chunk) => {
        const copy = Buffer.concat([Buffer.alloc(below(4)), chunk]).subarray(-chunk.length);
        reader.push(copy);
        copy.fill("x");
      },
      end: () => reader.end(),
    };
  };
}
