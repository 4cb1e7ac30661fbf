/** Every reader against a file that holds the traps of its format, and the records that it has to yield. */
import { describe, expect, it } from "vitest";
import { SourceFileError } from "#core/errors";
import { openArinXmlReader } from "#rir-import/formats/arin-xml";
import { openDelegatedReader } from "#rir-import/formats/delegated";
import type { OpenReader } from "#rir-import/formats/record";
import { openRpslReader } from "#rir-import/formats/rpsl";
import { openIanaReader } from "#rir-import/read/read-sources";
import { expected, fixture, recorded } from "../recorded.ts";

const cases: readonly (readonly [file: string, open: OpenReader])[] = [
  ["traps.rpsl", openRpslReader],
  ["arin.txt", openRpslReader],
  ["encodings.rpsl", openRpslReader],
  ["delegated-extended.txt", openDelegatedReader],
  ["arin-bulk.xml", openArinXmlReader],
  ["iana-ipv4.xml", openIanaReader],
];

describe.each(cases)("%s", (file, open) => {
  it("gives the expected records, reasons and lines", () => {
    expect(recorded(open, fixture(file))).toEqual(expected(`${file}.expected.json`));
  });

  it.each([1, 2, 3, 7, 64, 1000])("gives the same when it arrives in pieces of %i bytes", (bytes) => {
    expect(recorded(open, fixture(file), bytes)).toEqual(expected(`${file}.expected.json`));
  });

  it("gives the same with CR LF line ends", () => {
    const withReturns = Buffer.from(fixture(file).toString("latin1").replaceAll("\n", "\r\n"), "latin1");

    const { records, malformed } = recorded(open, withReturns);

    expect(records).toEqual(expected(`${file}.expected.json`).records);
    expect(malformed.map(({ line }) => line)).toEqual(
      expected(`${file}.expected.json`).malformed.map(({ line }) => line),
    );
  });
});

describe("RPSL, hostile", () => {
  it("skips an object with a 50 MB line and keeps its neighbours", () => {
    const long = `inetnum: 45.1.0.0/16\nremarks: ${"x".repeat(50_000_000)}\nsource: RIPE\n\n`;
    const text = `inetnum: 45.0.0.0/16\n\n${long}inetnum: 45.2.0.0/16\n`;

    const { records, malformed } = recorded(openRpslReader, Buffer.from(text), 65_536);

    expect(records).toMatchObject([{ range: "45.0.0.0/16" }, { range: "45.2.0.0/16" }]);
    expect(malformed).toMatchObject([{ line: 4, reason: "a line longer than 65,536 bytes" }]);
  });

  it("cuts a value of a million continuation lines", () => {
    const text = `inetnum: 45.0.0.0/16\ndescr: Example\n${" and more\n".repeat(1_000_000)}\n`;

    const { records } = recorded(openRpslReader, Buffer.from(text), 65_536);

    const [record] = records as [{ holder: { name: string } }];
    expect(record.holder.name.length).toBeLessThanOrEqual(500);
  });

  it("reports binary rubbish as malformed objects and goes on", () => {
    const rubbish = Buffer.from(Array.from({ length: 5000 }, (_, index) => (index * 7919) % 256));
    const text = Buffer.concat([rubbish, Buffer.from("\n\ninetnum: 45.2.0.0/16\n")]);

    expect(recorded(openRpslReader, text).records).toMatchObject([{ range: "45.2.0.0/16" }]);
  });
});

describe("delegated statistics that end inside a line", () => {
  const lines = [
    "2|apnic|20260101|2|||+1000",
    "apnic|*|ipv4|*|2|summary",
    "apnic|JP|ipv4|1.0.16.0|4096|20110412|allocated",
  ];

  it("stop the import when records are missing as well", () => {
    const read = () => recorded(openDelegatedReader, Buffer.from(lines.join("\n")));

    expect(read).toThrow(SourceFileError);
    expect(read).toThrow(
      "test-file:3: the file is cut off inside a line: the summary promises 2 ipv4 records, the file has 1",
    );
  });

  it("are read when all records are there", () => {
    const last = "apnic|JP|ipv4|1.0.64.0|16384|20110412|allocated";

    expect(recorded(openDelegatedReader, Buffer.from([...lines, last].join("\n"))).records).toHaveLength(2);
  });

  it("are warned of, not stopped, when whole lines are missing", () => {
    const { warnings } = recorded(openDelegatedReader, Buffer.from(`${lines.join("\n")}\n`));

    expect(warnings).toEqual(["the summary promises 2 ipv4 records, the file has 1"]);
  });
});

describe("XML, hostile", () => {
  const wrap = (inner: string) => Buffer.from(`<bulkwhois>${inner}</bulkwhois>`);
  const net = (handle: string, more = "") =>
    `<net><handle>${handle}</handle>${more}<netBlocks><netBlock><startAddress>45.1.0.0</startAddress><endAddress>45.1.0.255</endAddress><type>S</type></netBlock></netBlocks></net>`;

  it("stops when the file ends early", () => {
    const cut = fixture("arin-bulk.xml").subarray(0, 1500);

    expect(() => recorded(openArinXmlReader, cut)).toThrow("the XML ends early: no </bulkwhois>");
  });

  it("refuses a document type definition and its entities (billion laughs)", () => {
    const laughs = Buffer.from('<!DOCTYPE bulkwhois [<!ENTITY a "ha">]><bulkwhois></bulkwhois>');

    expect(() => recorded(openArinXmlReader, laughs)).toThrow("a document type definition is refused");
  });

  it("leaves entities it does not know as they are written", () => {
    const { records } = recorded(
      openArinXmlReader,
      wrap("<org><handle>A</handle><name>&lol; &amp; &#65;</name></org>"),
    );

    expect(records).toMatchObject([{ name: "&lol; & A" }]);
  });

  it("skips a record larger than 1 MiB and reads the next", () => {
    const text = wrap(net("BIG", `<comment>${"x".repeat(1_200_000)}</comment>`) + net("NEXT"));

    const { records, malformed } = recorded(openArinXmlReader, text, 65_536);

    expect(records).toMatchObject([{ range: "45.1.0.0/24" }]);
    expect(malformed).toEqual([{ line: 1, reason: "a <net> element larger than 1 MiB", value: "net" }]);
  });

  it("does not mistake <nets> or <netBlock> for <net>, nor an attribute for a name", () => {
    const { records } = recorded(
      openArinXmlReader,
      wrap(`<nets note="x">${net("A").replace("<net>", '<net id="1">')}</nets>`),
    );

    expect(records).toHaveLength(1);
  });
});
