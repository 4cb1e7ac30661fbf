/**
 * Every parser of what servers send. A target takes an input and throws when the parser throws or gives an invalid result.
 */
import { gzipSync } from "node:zlib";
import { SourceFileError } from "#core/errors";
import { retryAfterSeconds } from "#core/foreign-dates";
import { canonicalEscapes, canParseUrl, withoutUser } from "#core/ip/url-host";
import { urlKeyOf } from "#core/url-key";
import { Failure } from "#crawler/core/failure";
import { robotsDirectives } from "#crawler/extract/extract-list";
import { extractPage } from "#crawler/extract/extract-page";
import { linkResolver, resolveUrl } from "#crawler/extract/resolve-url";
import { gateInBody } from "#crawler/fetch/bot-gate";
import { decodeBody } from "#crawler/fetch/content-codings";
import { askedPrice } from "#crawler/fetch/fetch-page";
import { FramingMender } from "#crawler/fetch/odd-framing";
import { parseRobots, robotsVerdict, sitemapUrls } from "#crawler/fetch/robots-rules";
import { usesOfPath } from "#crawler/fetch/robots-uses";
import { contentSignal, contentUsage } from "#crawler/preferences/content-usage";
import { inlineLicense, licenseLinks } from "#crawler/preferences/rsl";
import { mergedStatements } from "#crawler/preferences/statements";
import { parseTdmFile, TdmRules, tdmReservation } from "#crawler/preferences/tdm-reservation";
import { challenge } from "#protocol/bot-gate";
import { fetchResultSchema } from "#protocol/result";
import { readCloudRanges } from "#rir-import/formats/cloud-ranges";
import { GeofeedFinder, GeofeedReader } from "#rir-import/formats/geofeed";
import { maxPlaceLength, type PublishedSink, publishedFormats } from "#rir-import/formats/published";
import { hostileBytes, type Material, pick } from "./mutate.ts";

export interface Target extends Material {
  readonly name: string;
  /** `random` decides what else goes with the input (a content type, a base). */
  check(input: string, random: () => number): void | Promise<void>;
}

const gzipText = (text: string) => gzipSync(text).toString("latin1");
const pageSchema = fetchResultSchema.shape.page.unwrap();
const base = "http://site.example/a/b?c";

export const targets: readonly Target[] = [
  {
    name: "robots",
    seeds: [
      "User-agent: *\nDisallow: /private\nAllow: /private/open\nCrawl-delay: 2\nSitemap: http://site.example/map.xml\n",
      "user-agent: Nearcrawl\nuser-agent: other\ndisallow: /*.pdf$\n\nUser-agent: *\nDisallow:\n",
    ],
    tokens: [
      ..."User-agent: * $ / # : %2F %7e Nearcrawl".split(" "),
      "Disallow: ",
      "Allow: ",
      "\n",
      "\r\n",
      "Sitemap: ",
      "Crawl-delay: 1e99",
    ],
    check(input, random) {
      const rules = parseRobots(hostileBytes(random, input), "Nearcrawl");
      for (const path of ["/", "/robots.txt", input.slice(0, 500), `/${input.slice(-500)}`]) {
        const { allowed } = robotsVerdict(rules, path);
        if (path === "/robots.txt" && !allowed) throw new Error("robots.txt itself is forbidden");
      }
      for (const url of sitemapUrls(rules, "http://site.example/robots.txt")) new URL(url);
      const delay = rules.crawlDelaySeconds;
      if (delay !== null && !(delay >= 0 && Number.isFinite(delay))) throw new Error(`a delay of ${delay}`);
    },
  },
  {
    name: "html",
    seeds: [
      '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A &amp; B</title><base href="/x/"><link ' +
        'rel="canonical" href="y"><meta name="description" content="what it is"></head><body><nav><a href="/">home</a>' +
        '</nav><h1>Head</h1><p>Some <b>text</b> with a <a href="page?q=1#f" rel="nofollow">link</a>.</p><img ' +
        'alt="picture" src=x></body></html>',
      '<title>x</title><script type="application/ld+json">' +
        '{"@type":"Article","name":"n","datePublished":"2026-01-02"}</script><p>one<p>two<table><tr><td>cell</table>' +
        '<textarea><a href=no></textarea><!-- c --><svg><a xlink:href="/s">s</a></svg>',
    ],
    tokens: [
      ...`< > </ <b> <p> " ' <!-- --> <![CDATA[ ]]> <script> </script> <title> <plaintext>`.split(" "),
      ..."& &#x &#1114112; &amp = /> <table> <svg> <template> <div> </div> { [".split(" "),
      "<a href=",
      "\u0301\u0316",
      "<meta ",
      "<base href=//",
    ],
    async check(input, random) {
      const contentType = pick(random, [
        "text/html",
        "text/html; charset=shift_jis",
        "application/xhtml+xml",
        "text/plain",
        "text/html; charset=utf-16le",
        'text/html;charset="x-user-defined"',
      ]);
      await extracted(hostileBytes(random, input), contentType);
    },
  },
  {
    name: "gate",
    seeds: [
      '<!doctype html><html><head><title>Making sure you\'re not a bot!</title><meta name="robots" content="noindex">' +
        '<script id="anubis_version" type="application/json">"v1"</script></head><body><h1>Wait</h1><noscript>' +
        "Scripts</noscript></body></html>",
      '<html><head><meta http-equiv="refresh" content="5; URL=\'/?bm-verify=A\'"></head><body><div id="root"></div>' +
        '<script src="/app.js"></script><iframe src="/_Incapsula_Resource?SWUDNSAI=1">Incapsula incident ID: 1</iframe>' +
        "</body></html>",
    ],
    tokens: [
      ..."< > <script> </script> <noscript> <title> noindex document.cookie= location.reload( &amp;".split(
        " ",
      ),
      "<meta ",
      "are you human",
    ],
    check(input, random) {
      const bytes = hostileBytes(random, input);
      for (const of of ["page", "robots"] as const) {
        const { provider, shell } = gateInBody(
          bytes,
          { status: pick(random, [200, 202, 403, 503]), headers: {} },
          of,
        );
        if (provider !== null) challenge.parse({ provider, of, status: 200 });
        if (provider !== null && shell !== null) throw new Error("a gate's shell");
      }
    },
  },
  {
    name: "sitemap",
    seeds: [
      '<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>' +
        "http://site.example/1</loc><lastmod>2026-01-02</lastmod></url></urlset>",
      "<sitemapindex><sitemap><loc><![CDATA[http://site.example/s.xml]]></loc></sitemap></sitemapindex>",
      '<rss version="2.0"><channel><item><link>http://site.example/n</link><pubDate>Mon, 02 Jan 2026 00:00:00 GMT</pubDate></item></channel></rss>',
      '<feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="/e"/><updated>2026-01-02T00:00:00Z</updated></entry></feed>',
      "http://site.example/1\nhttp://site.example/2\n",
    ],
    tokens: [
      ..."<url> </url> <loc> </loc> &a; <![CDATA[ ]]> <? ?> <sitemap> <item> <x:loc> xmlns:x= &#0; http://".split(
        " ",
      ),
      "<!ENTITY a 'aaaaaaaaaa'>",
      "<!DOCTYPE x [",
      "\n",
    ],
    async check(input, random) {
      await extracted(
        hostileBytes(random, input),
        pick(random, [
          "application/xml",
          "text/xml",
          "text/plain",
          "application/rss+xml",
          "application/atom+xml",
        ]),
      );
    },
  },
  {
    name: "gzip",
    seeds: [gzipText("<p>a page"), gzipText("<p>two ") + gzipText("members"), `${gzipText("<p>a page")}\r\n`],
    tokens: [
      "\x1f\x8b\x08",
      "\x1f",
      "\0",
      "\x04",
      "\xff",
      "\r\n",
      "<!-- cache -->",
      gzipText(""),
      gzipText("x".repeat(99)),
    ],
    async check(input) {
      const bytes = Buffer.from(input, "latin1");
      const cut = input.length % 2 === 1;
      const decoded = await decodeBody("gzip", { bytes, cut, limit: 10_000 }).catch((error: unknown) => {
        if (!(error instanceof Failure)) throw error;
      });
      if (decoded && decoded.bytes.length > 10_000) throw new Error(`${decoded.bytes.length} bytes`);
    },
  },
  {
    name: "framing",
    seeds: [
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nX-A: b\r\n c\r\nTransfer-Encoding: chunked\r\n\r\n3  \r\nabc\r\n0\r\n\r\n",
      "HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n\tchunked\r\n\r\n3 ;a=b\r\nabc\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
    ],
    tokens: [
      "\r\n",
      "\r",
      "\n",
      " ",
      "\t",
      "HTTP/1.1 100",
      "HTTP/1.1 200 OK",
      "chunked",
      ":",
      ";",
      "0",
      "ff",
    ],
    check(input, random) {
      const bytes = Buffer.from(input, "latin1");
      const [whole, mender] = [new FramingMender(), new FramingMender()];
      const pieces: Buffer[] = [];
      for (let at = 0; at < bytes.length; ) {
        const end = at + 1 + Math.floor(30 * random());
        pieces.push(mender.push(bytes.subarray(at, end)));
        at = end;
      }
      const given = whole.push(bytes);
      if (!Buffer.concat(pieces).equals(given)) throw new Error("depends on the border of a packet");
      if (!whole.isOdd && !bytes.subarray(0, given.length).equals(given))
        throw new Error("mended in silence");
    },
  },
  {
    name: "url",
    seeds: [
      "http://site.example/a/b?c=d&e=f#g",
      "//other.example:8080/x",
      "../up/./here;v=1",
      "https://[2001:db8::1]/",
      "http://1.2.3.4/%7euser/",
    ],
    tokens: [
      ..."/ // ? # @ : % %2e %7E %d0 %4 .. . [ ] http: javascript: data: 0x7f.1 １２７ xn-- & = ;".split(" "),
      "\\",
    ],
    check(input) {
      const absolute = resolveUrl(input, base);
      const expected = canParseUrl(input.trim(), base) ? new URL(input.trim(), base) : null;
      if (absolute === null) return;
      if (expected !== null) expected.hash = "";
      const plain = expected === null ? "" : withoutUser(expected.href);
      if (expected !== null) [expected.username, expected.password] = ["", ""];
      if (plain !== expected?.href) throw new Error(`${plain} in place of ${expected?.href} without a user`);
      const spelled = canonicalEscapes(expected?.href ?? "");
      if (absolute !== spelled) throw new Error(`${absolute} in place of ${spelled}`);
      if (linkResolver(base)(input) !== absolute) throw new Error(`${absolute} by parsing, else another`);
      if (resolveUrl(absolute, base) !== absolute) throw new Error(`${absolute} is not what it resolves to`);
      const key = urlKeyOf(absolute);
      if (typeof key !== "string" && urlKeyOf(key.url) === undefined) throw new Error("a key without a key");
      if (typeof key !== "string" && (urlKeyOf(key.url) as { url?: string }).url !== key.url) {
        throw new Error(`the canonical form of ${key.url} is another`);
      }
    },
  },
  {
    name: "header",
    seeds: [
      "120",
      "Wed, 21 Oct 2026 07:28:00 GMT",
      "noindex, nofollow",
      "nearcrawl: noindex",
      "unavailable_after: 25 Jun 2010 15:00:00 PST",
      "max-snippet: 20",
      "text/html; charset=utf-8",
      '</x>; rel="canonical"',
    ],
    tokens: [...', ; : = " charset= noindex rel= < > GMT - 99999999999'.split(" "), "\\", " "],
    async check(input, random) {
      const seconds = retryAfterSeconds(input, new Date(1_790_000_000_000));
      if (seconds !== null && !(seconds >= 0 && seconds <= 31_536_000)) throw new Error(`${seconds} seconds`);
      robotsDirectives({ metas: [input], header: [input, input], nowMs: 1_790_000_000_000 });
      if (random() < 0.2) await extracted(Buffer.from("<p>text</p>"), input.slice(0, 200), input);
    },
  },
  {
    name: "preferences",
    seeds: [
      "search=yes, ai-train=no, use=reference",
      'train-ai=n;x="y", ai-use=(a b);q=1.5, search=?0, s=:YQ==:',
      '</l.xml>; rel="license"; type="application/rsl+xml", </a>; rel=preload',
      '[{"location":"/a/*.jpg$","tdm-reservation":1,"tdm-policy":"https://s.example/p"},{"location":"/","tdm-reservation":0}]',
      '<rsl xmlns="https://rslstandard.org/rsl"><content url="/" server="x"><license><permits type="usage">' +
        'search,all</permits><prohibits type="usage">ai-train</prohibits><payment type="crawl"/></license></content></rsl>' +
        "",
      "User-agent: *\nContent-Signal: /a search=no\nContent-Usage: search=n\nLicense: https://s.example/l\n",
    ],
    tokens: [
      ...[...'= , ; " ( ) ?0 : < > <!-- --> / * $ [ ] { }'.split(" "), "\\", "\n"],
      ...[
        ..."search no n y license prohibits tdm-reservation".split(" "),
        "Content-Signal: ",
        "Content-Usage: ",
      ],
    ],
    check(input, random) {
      const place = "header" as const;
      const rules = new TdmRules(parseTdmFile(hostileBytes(random, input)));
      const { uses } = parseRobots(input, "Nearcrawl");
      const stated = mergedStatements([
        ...contentSignal(input, place),
        ...contentUsage(input, place),
        ...tdmReservation({ reservation: [input, input], policy: input }, place),
        ...licenseLinks(input),
        ...inlineLicense(input, new URL(base)),
        ...rules.stated("/a/b?c"),
        ...usesOfPath(uses, "/a/b?c").map(({ line: _, ...one }) => one),
      ]);
      fetchResultSchema.shape.preferences.parse(stated);
      const price = askedPrice({
        "crawler-price": input,
        "payment-required": Buffer.from(input).toString("base64"),
      });
      if (price !== null && (price === "" || price.length > 80)) throw new Error(`a price of ${price}`);
    },
  },
  {
    name: "published",
    seeds: [
      '# ours\n193.0.0.0/21,NL,NL-NH,Amsterdam,\n2001:db9::/32,FR,FR-IDF,"Paris, La Défense",\n',
      '{"syncToken":"1","createDate":"2026-03-01-09-00-03","prefixes":[{"ip_prefix":"3.64.0.0/12","region":"eu-central-1"}],"ipv6_prefixes":[]}',
      '{"changeNumber":3,"values":[{"properties":{"region":"westeurope","addressPrefixes":["4.175.0.0/16"]}}]}',
      '{"last_updated_timestamp":"2026-03-01","regions":[{"region":"us-phoenix-1","cidrs":[{"cidr":"129.146.0.0/21"}]}]}',
      '{"result":{"ipv4_cidrs":["173.245.48.0/20"],"ipv6_cidrs":["2400:cb00::/32"],"etag":"38f7"}}',
      "remarks: Geofeed https://a.example/geofeed.csv\n",
    ],
    tokens: [
      ...[...'/ , - . : # " { } [ ] null 1e999 :: 0.0.0.0/0 /33'.split(" "), "\n"],
      ...["geofeed", "https://", "region", "prefixes", "GLOBAL", "\uFEFF"],
    ],
    check(input, random) {
      const sink: PublishedSink = {
        range({ range, place }) {
          if (range.first > range.last) throw new Error(`a range that is none: ${input.slice(0, 200)}`);
          if (place !== null && (place === "" || place.length > maxPlaceLength))
            throw new Error(`place ${place}`);
        },
        ignore: () => {},
        malformed: () => {},
        facts: () => {},
      };
      const bytes = hostileBytes(random, input);
      const reader = new GeofeedReader(sink);
      const finder = new GeofeedFinder(1000);
      for (let at = 0; at < bytes.length; at += 5000) {
        reader.push(bytes.subarray(at, at + 5000));
        finder.push(bytes.subarray(at, at + 5000));
      }
      reader.end();
      finder.end();
      for (const url of finder.urls)
        if (new URL(url).protocol !== "https:") throw new Error(`a geofeed at ${url}`);
      for (const format of publishedFormats) {
        if (format === "geofeed") continue;
        try {
          readCloudRanges("list", format, bytes.toString("utf8"), sink);
        } catch (error) {
          if (!(error instanceof SourceFileError)) throw error;
        }
      }
    },
  },
];

/** The extracted values must fit the message that ships them, whatever the input. */
async function extracted(bytes: Buffer, contentType: string, robotsTag?: string): Promise<void> {
  const { page } = await extractPage({
    url: base,
    bytes,
    contentType,
    contentLanguage: null,
    robotsTag,
    quiet: async () => {},
  });
  pageSchema.parse(page);
}
