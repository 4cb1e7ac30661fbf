/** Each reader against a file with the traps of its format and the expected records. */

import { describe, expect, it } from "vitest";
import { SourceFileError } from "#core/errors";
import { openArinXmlReader } from "#rir-import/formats/arin-xml";
import { openDelegatedReader } from "#rir-import/formats/delegated";
import { GeofeedFinder } from "#rir-import/formats/geofeed";
import type { OpenReader, RegistryRecord } from "#rir-import/formats/record";
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

  it("reports binary garbage as malformed objects and continues", () => {
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

  it("are accepted with a warning when whole lines are missing", () => {
    const { warnings } = recorded(openDelegatedReader, Buffer.from(`${lines.join("\n")}\n`));

    expect(warnings).toEqual(["the summary promises 2 ipv4 records, the file has 1"]);
  });
});

describe("XML, hostile", () => {
  const wrap = (inner: string) => Buffer.from(`<bulkwhois>${inner}</bulkwhois>`);
  const net = (handle: string, more = "") =>
    `<net><handle>${handle}</handle>${more}<netBlocks><netBlock><startAddress>45.1.0.0</startAddress>` +
    "<endAddress>45.1.0.255</endAddress><type>S</type></netBlock></netBlocks></net>";

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

describe("RPSL, geofeeds in remarks over several lines (RFC 2622 section 2, RFC 9632 section 3)", () => {
  const geofeedOf = (lines: string, chunkBytes?: number) => {
    const text = Buffer.from(
      `inetnum: 193.0.7.0/24\n${lines}\nsource: RIPE\n\ninetnum: 193.0.8.0/24\nsource: RIPE\n`,
    );
    const named: (string | null | undefined)[] = [];
    const record = (one: RegistryRecord) => void named.push(one.type === "network" ? one.geofeed : null);
    const nothing = () => {};
    const sink = { record, ignore: nothing, malformed: nothing, warn: nothing, facts: nothing };
    const reader = openRpslReader("test-file", sink);
    const bytes = chunkBytes ?? text.length;
    for (let at = 0; at < text.length; at += bytes) reader.push(text.subarray(at, at + bytes));
    reader.end();
    return named[0];
  };
  const url = "https://h.example/g.csv";

  it.each([
    `remarks:\n                Geofeed ${url}`,
    `remarks:        Our places are published:\n+               Geofeed ${url}`,
    `remarks: first\n second\n\tGeofeed ${url}\n third`,
    `remarks: Geofeed\n ${url}`,
    `geofeed:\n ${url}`,
    `remarks: one\nremarks: two\n Geofeed ${url}\nremarks: three`,
    `Comment:\n Geofeed ${url}`,
    `remarks:\r\n Geofeed ${url}\r`,
    `remarks: Geofeed ${url}\n Geofeed https://second.example/g.csv`,
  ])("%j names one, and the fetch finds it", (lines) => {
    for (const chunkBytes of [1, 7, 1000]) {
      expect(geofeedOf(lines, chunkBytes)).toBe(url);
      const finder = new GeofeedFinder(100);
      const bytes = Buffer.from(`${lines}\n`);
      for (let at = 0; at < bytes.length; at += chunkBytes) finder.push(bytes.subarray(at, at + chunkBytes));
      finder.end();
      expect([...finder.urls][0]).toBe(url);
    }
  });

  it.each([
    `remarks: see\n our Geofeed ${url}`,
    `descr: Example\n Geofeed ${url}`,
    `remarks: one\n two\nmnt-by: Geofeed ${url}`,
    `remarks: one\nmnt-by: A\n Geofeed ${url}`,
  ])("%j names none", (lines) => {
    expect(geofeedOf(lines)).toBeNull();
  });
});

describe("withdrawn country codes", () => {
  it.each([
    ["UK", "GB"],
    ["uk", "GB"],
    ["UK # Great Britain", "GB"],
    ["TP", "TL"],
    ["ZR", "CD"],
    ["FX", "FR"],
    ["DD", "DE"],
    ["AN", "AN"],
    ["SU", "SU"],
    ["EU", "EU"],
    ["AP", "AP"],
    ["ZZ", null],
  ])("%s is %s in every registry's form", (written, country) => {
    const code = written.slice(0, 2);
    const rpsl = Buffer.from(`inetnum: 193.0.0.0/21\ncountry: ${written}\nsource: RIPE\n`);
    const delegated = Buffer.from(
      `2|ripencc|1|1|1|1|+0\nripencc|${code}|ipv4|193.0.0.0|768|19930101|allocated|a\n`,
    );

    expect(recorded(openRpslReader, rpsl).records).toMatchObject([{ country }]);
    expect(recorded(openDelegatedReader, delegated).records).toMatchObject([{ country }]);
  });
});
