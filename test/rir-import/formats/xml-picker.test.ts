/** What is picked from the bytes of a record against what fast-xml-parser reads in it. */
import { describe, expect, it } from "vitest";
import { seededRandom } from "#core/random";
import { ValueDecoder } from "#rir-import/formats/text-decoding";
import { parseXmlRecord, XmlPicker } from "#rir-import/formats/xml-picker";

const wanted = ["handle", "name", "netBlocks", "netBlock", "startAddress", "type"];
const picker = new XmlPicker(wanted, new ValueDecoder());

function picked(xml: string): unknown {
  const bytes = Buffer.from(`..${xml}<`);
  const picking = picker.pick(bytes, 2, bytes.length);
  return picking === "picked" ? picker.value : picking;
}

/** fast-xml-parser's values, those that are not wanted left out. */
function parsed(xml: string): unknown {
  return onlyWanted(parseXmlRecord(/^<([\w.-]+)/.exec(xml)?.[1] ?? "", xml));
}

function onlyWanted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(onlyWanted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([name]) => wanted.includes(name));
  return Object.fromEntries(entries.map(([name, child]) => [name, onlyWanted(child)]));
}

describe("a regular record", () => {
  it.each([
    ["<net><handle>A</handle><name>B</name></net>", { handle: "A", name: "B" }],
    ["<net>\n  <handle> A\tB </handle>\r\n</net>", { handle: "A\tB" }],
    ['<net id="1"  x = "y>"><handle/></net>', "irregular"],
    [`<net id="1" x='y>' ><handle/></net >`, "irregular"],
    [`<net id="1" x='y>' ><handle/><name></name></net>`, { handle: "", name: "" }],
    [
      "<net><netBlocks><netBlock><type>S</type></netBlock></netBlocks></net>",
      { netBlocks: { netBlock: { type: "S" } } },
    ],
    ["<net><type>A</type><type>B</type><type>C</type></net>", { type: ["A", "B", "C"] }],
    ["<net><other><handle>X</handle></other><handle>Y</handle></net>", { handle: "Y" }],
    ["<net><name>Söhne &amp; Co &#x2014; &lol;</name></net>", { name: "Söhne &amp; Co &#x2014; &lol;" }],
    ["<net>only text</net>", "only text"],
    ["<net/>", ""],
  ])("%s", (xml, value) => {
    expect(picked(xml)).toEqual(value);
    if (value !== "irregular") expect(parsed(xml)).toEqual(value);
  });

  it("that is cut anywhere is incomplete, never wrong", () => {
    const xml = '<net a="b"><handle>A &amp; B</handle><netBlocks><netBlock x="1"/></netBlocks></net>';
    for (let length = 1; length < xml.length; length++) {
      const bytes = Buffer.from(xml.slice(0, length));
      expect([length, picker.pick(bytes, 0, bytes.length)]).toEqual([length, "incomplete"]);
    }
  });
});

describe("left to the parser", () => {
  it.each([
    "<net><!-- comment --><handle>A</handle></net>",
    "<net><handle><![CDATA[A]]></handle></net>",
    "<net><?pi?></net>",
    "<net><!DOCTYPE x></net>",
    "<net>text<handle>A</handle></net>",
    "<net><handle>A</handle>text</net>",
    "<net><x:handle>A</x:handle></net>",
    "<net><handle>A</name></net>",
    "<net><handle>A</handlee></net>",
    "<net><handle>A & B</handle></net>",
    "<net><handle a=b>A</handle></net>",
    `<net><handle a="<">A</handle></net>`,
    "<net><1>A</1></net>",
    `${"<net>".repeat(200)}${"</net>".repeat(200)}`,
  ])("%.60s", (xml) => {
    expect(picked(xml)).toBe("irregular");
  });
});

describe("random records (seed 77)", () => {
  const random = seededRandom(77);
  const below = (limit: number) => Math.floor(random() * limit);
  const names = [...wanted, "comment", "line", "pocLink", "n"];
  const texts = [
    "",
    " ",
    "A",
    "EXAMP-1",
    "045.030.000.000",
    "Ünï &amp; x",
    "\n a \n b ",
    "&#65;&lt;",
    ">",
    "a'\"b",
  ];

  function element(name: string, depth: number): string {
    const attribute = below(4) === 0 ? ` a="${["", "1", "x y", "/>"][below(4)]}"` : "";
    if (below(8) === 0) return `<${name}${attribute}/>`;
    const isLeaf = depth > 4 || below(3) === 0;
    const children = () =>
      Array.from({ length: below(5) }, () => element(names[below(names.length)]!, depth + 1));
    const content = isLeaf ? texts[below(texts.length)] : children().join(["", "\n", "  "][below(3)]);
    return `<${name}${attribute}>${content}</${name}>`;
  }

  it("give the same values both ways", () => {
    for (let round = 0; round < 5000; round++) {
      const xml = element("net", 0);
      expect([xml, picked(xml)]).toEqual([xml, parsed(xml)]);
    }
  });

  it("with a byte changed are never taken for something else", () => {
    let taken = 0;
    for (let round = 0; round < 20_000; round++) {
      const xml = element("net", 0);
      const at = 4 + below(xml.length - 4);
      const mangled = `${xml.slice(0, at)}${"<>/&;= \"'!a"[below(11)]}${xml.slice(at + below(2))}`;
      const value = picked(mangled);
      if (value === "irregular" || value === "incomplete") continue;
      taken++;
      const own = Buffer.from(mangled)
        .subarray(0, picker.end - 2)
        .toString();
      expect([own, value]).toEqual([own, parsed(own)]);
    }
    expect(taken).toBeGreaterThan(2000);
  });
});
