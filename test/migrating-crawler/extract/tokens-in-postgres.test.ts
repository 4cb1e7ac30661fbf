/** Compares the splitter with Postgres' parser on known classes of text and on random text. */
import { describe, expect, it } from "vitest";
import { seededRandom } from "#core/random";
import { anyWord, asciiWord, asItIs } from "#crawler/extract/dictionaries";
import { splitTokens } from "#crawler/extract/tokens";
import { testDatabase } from "../../support/database.ts";
import { forThisFile } from "../../support/for-this-file.ts";

const database = await forThisFile(testDatabase());

/** The token types that text search configurations use, by dictionary. */
const kinds: Readonly<Record<string, number>> = {
  ...Object.fromEntries(["asciiword", "asciihword", "hword_asciipart"].map((name) => [name, asciiWord])),
  ...Object.fromEntries(["word", "hword", "hword_part"].map((name) => [name, anyWord])),
  ...Object.fromEntries(
    ["numword", "numhword", "hword_numpart", "email", "url", "host", "url_path", "file"]
      .concat(["sfloat", "float", "int", "uint", "version"])
      .map((name) => [name, asItIs]),
  ),
};

function ours(text: string): string[] {
  const tokens: string[] = [];
  const take = (token: { kind: number; from: number; to: number }) =>
    tokens.push(`${token.kind} ${text.slice(token.from, token.to)}`);
  splitTokens(text, { isFull: false, take });
  return tokens;
}

async function theirs(texts: readonly string[]): Promise<string[][]> {
  const answer = await database.pool.query<{ text: number; alias: string; token: string }>(
    `select t.ordinality::int - 1 as text, types.alias, parsed.token
     from unnest($1::text[]) with ordinality t(body, ordinality),
       lateral ts_parse('default', body) with ordinality parsed(tokid, token, place)
       join ts_token_type('default') types using (tokid)
     order by t.ordinality, parsed.place`,
    [texts],
  );
  const tokens = texts.map((): string[] => []);
  for (const { text, alias, token } of answer.rows) {
    if (kinds[alias] !== undefined) tokens[text]!.push(`${kinds[alias]} ${token}`);
  }
  return tokens;
}

describe("the tokens of", () => {
  it.each(
    Object.entries({
      "hosts, URLs and ports":
        "See site.example, www.a-b.site.example:8080/x?y=1#z, http://site.example/ and a.b",
      "e-mail addresses":
        "Mail first.last+tag@mail.site.example:25, é1@site.example or user@nohost, a@b.com@c.com",
      "files and paths":
        "in /etc/hosts, ~/.profile, ../up/../x.tar.gz, ./a, foo.bar_1, and/or a/b/.. or word.. end",
      numbers: "12 -3 +4.5 6.7e8 -9e-10 1.2.3 -1.2.3 1,024 18h30 1e5.com 3-year 2026-11-21 x2 2x",
      compounds:
        "state-of-the-art, e-mail, B2B-Shop, foo-bar-12 baz, a-1b-c, COVID-19, Straßen-Äpfel-3D, a--b, x-",
      "tags and entities":
        "a<b>c</b> 1 < 2 <br/> <!-- no --> <a href='x>y'>t</a> &amp; &#x41; &nope &copy;2026 AT&T",
      "scripts left in the text":
        "before <script> var hidden = 1; </script> after <style type=a> x </style> end",
      "a script that never ends": "before <script foo bar and nothing after counts",
      "other scripts": "日本語テキスト １月 مرحبا ٣٤ हिन्दी में १२ क्या ελληνικά Ελλάδα ไทย 한국어 Ελλάς",
      "characters outside the basic plane": "𝐀𝐁 x𝐀 😀 a😀b 𠀀𠀁",
      "combining marks": "e\u0301te \u0301alone a\u0308-b\u0308 x\u20dd",
      "apostrophes and quotes": "don't l’été 'quoted' “curly” O'Neil rock'n'roll ʼtick",
    }),
  )("%s are Postgres'", async (_name, text) => {
    const [expected] = await theirs([text]);

    expect(ours(text)).toEqual(expected);
  });

  it.each([
    ["joined ASCII", "ab1.-_@/: "],
    ["paths and signs", "a1.-/~+e "],
    ["marks and digits of other scripts", "aé1-. \u0301٣𝐀😀"],
    ["markup", "<a\"'/>= !-b;&#x1"],
    ["numbers", "a1e+-.2 "],
    ["scripts", "<script></style> a\\!--D?x"],
  ])("random text of %s are Postgres'", async (_name, alphabet) => {
    const seed = 5;
    const random = seededRandom(seed);
    const characters = [...alphabet];
    const texts = Array.from({ length: 1500 }, () =>
      Array.from(
        { length: 1 + Math.floor(random() * 20) },
        () => characters[Math.floor(random() * characters.length)],
      ).join(""),
    );

    const expected = await theirs(texts);

    for (const [index, text] of texts.entries()) {
      expect(ours(text), `seed ${seed}: ${JSON.stringify(text)}`).toEqual(expected[index]);
    }
  });
});

/** Counts how often a character is read. */
class CountingText extends String {
  reads = 0;
  override charCodeAt(at: number): number {
    this.reads++;
    return super.charCodeAt(at);
  }
}

function readsOf(text: string): number {
  const counting = new CountingText(text);
  splitTokens(counting as unknown as string, { isFull: false, take: () => {} });
  return counting.reads;
}

describe("splitting text that is meant to hurt", () => {
  it.each([
    ["one word", "a"],
    ["words joined by underscores", "a_"],
    ["words joined by hyphens", "a-"],
    ["words joined by hyphens and digits", "a-1-"],
    ["labels joined by dots", "a.b."],
    ["hosts that go wrong at the end", "site.example-a_"],
    ["addresses", "a@"],
    ["addresses without a host", "x_@"],
    ["numbers", "1."],
    ["exponents", "1e"],
    ["slashes and dots", "/."],
    ["slashes and tildes", "/~"],
    ["opened tags", "<a "],
    ["opened tags with quotes", "<a '"],
    ["opened comments", "<!--"],
    ["entities without an end", "&a"],
    ["entities with everything in them", "&a.:_-"],
    ["colons and slashes", "a://"],
    ["combining marks", "\u0301a"],
  ])("takes time in proportion to its length: %s", (_name, unit) => {
    const short = readsOf(unit.repeat(20_000 / unit.length));
    const long = readsOf(unit.repeat(80_000 / unit.length));

    expect(long).toBeLessThan(4.4 * short);
    expect(long).toBeLessThan(30 * 80_000);
  });
});
