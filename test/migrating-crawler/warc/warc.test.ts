/** A partner's archive of real fetches, read by an independent reader (warcio). */
import { createHash } from "node:crypto";
import { createReadStream, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { WARCParser } from "warcio";
import { ConfigError } from "#core/errors";
import { openWarc } from "#crawler/warc/open-warc";
import { WarcFiles, type WarcFilesSettings } from "#crawler/warc/warc-files";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { type Handle, html, startSite } from "../support/origin.ts";
import { sliceRunner } from "../support/slices.ts";
import { testConfig } from "../support/test-config.ts";

const userAgent = () => "Nearcrawl/test (+https://crawler.example/)";
const freshFolder = (): string => temporaryFolder("nearcrawl-warc-");

interface ReadRecord {
  readonly type: string;
  readonly fields: Record<string, string>;
  readonly statusLine: string;
  readonly http: Record<string, string>;
  /** The body as stored and as decoded. */
  readonly raw: Buffer;
  readonly content: string;
}

/** All records except those of robots.txt. */
async function readBack(folder: string): Promise<ReadRecord[]> {
  const records: ReadRecord[] = [];
  for (const name of readdirSync(folder).sort()) {
    const path = join(folder, name);
    for await (const record of new WARCParser(createReadStream(path), { keepHeadersCase: true })) {
      const http = record.httpHeaders;
      const content = await record.contentText();
      const read = {
        type: record.warcType,
        fields: Object.fromEntries(record.warcHeaders.headers),
        statusLine: http?.statusline ?? "",
        http: Object.fromEntries(http?.headers ?? []),
        raw: Buffer.alloc(0),
        content,
      };
      if (!read.fields["WARC-Target-URI"]?.endsWith("/robots.txt")) records.push(read);
    }
  }
  return records;
}

/** The archived records of a site's pages; `robots` is its robots.txt, if any. */
async function archived(
  handle: Handle,
  { paths = ["/"], etag, robots }: { paths?: readonly string[]; etag?: string; robots?: string } = {},
) {
  const folder = freshFolder();
  const origin = await startSite(handle, robots);
  const warc = openWarc({ ...testConfig({ warc: { folder } }) }, { software: "Nearcrawl/test", userAgent })!;
  const urls = paths.map((path) => ({ url: origin.url + path, etag: etag ?? null, lastModified: null }));
  await sliceRunner().crawl([urls[0]!.url], { urls }, { recorder: warc.recorder, userAgent });
  await warc.close();
  const records = await readBack(folder);
  return { folder, origin, records, of: (type: string) => records.find((one) => one.type === type) };
}

describe("what is fetched", () => {
  it("is archived as response and request after a warcinfo", async () => {
    const page = "<title>Amber ships</title><p>They sailed.";

    const { folder, origin, records } = await archived(
      (_, response) => html(response, page, { "X-Odd-Case": "ümlaut\u00ff" }),
      { paths: ["/page?q=1"] },
    );
    const [info, response, request] = records;

    expect(info).toMatchObject({ type: "warcinfo", fields: { "Content-Type": "application/warc-fields" } });
    expect(info?.content).toContain("software: Nearcrawl/test\r\n");
    expect(info?.content).toContain("http-header-user-agent: Nearcrawl/test (+https://crawler.example/)");
    expect(response).toMatchObject({
      type: "response",
      statusLine: "HTTP/1.1 200 OK",
      content: page,
      fields: {
        "WARC-Target-URI": `${origin.url}/page?q=1`,
        "WARC-IP-Address": "127.0.0.1",
        "Content-Type": "application/http; msgtype=response",
      },
    });
    const block = blockOf(folder, "response", `${origin.url}/page?q=1`);
    expect(block.toString("latin1")).toContain("\r\nX-Odd-Case: ümlaut\u00ff\r\n");
    expect(request).toMatchObject({
      type: "request",
      statusLine: "GET /page?q=1 HTTP/1.1",
      http: { "user-agent": "Nearcrawl/test (+https://crawler.example/)", host: new URL(origin.url).host },
      fields: { "WARC-Concurrent-To": response?.fields["WARC-Record-ID"] },
    });
  });

  it("includes the request as sent, header for header", async () => {
    const { origin, of } = await archived((_, response) => html(response, "<p>x"));

    expect(of("request")?.http).toEqual(origin.headers.at(-1));
  });

  it("has no user or password in the URLs of headers", async () => {
    const location = "https://user:secret@h.example/a?b@c";
    const link = `<${location}>; rel="canonical"`;

    const { of } = await archived((_, response) => {
      response.writeHead(302, { location, link, refresh: `0; url=${location}` }).end();
    });

    expect(of("response")?.http).toMatchObject({
      location: "https://h.example/a?b@c",
      link: '<https://h.example/a?b@c>; rel="canonical"',
      refresh: "0; url=https://h.example/a?b@c",
    });
  });

  it("keeps a coded body as transferred, with matching digests", async () => {
    const body = gzipSync("<p>packed words");

    const { folder, origin, of } = await archived((_, response) => {
      response.writeHead(200, { "content-type": "text/html", "content-encoding": "gzip" });
      response.write(body.subarray(0, 5));
      response.end(body.subarray(5));
    });
    const response = of("response");
    const block = blockOf(folder, "response", `${origin.url}/`);

    expect(response?.content).toBe("<p>packed words");
    expect(response?.http["X-Crawler-Transfer-Encoding"]).toBe("chunked");
    expect(block.subarray(block.indexOf("\r\n\r\n") + 4)).toEqual(body);
    expect(response?.fields["WARC-Payload-Digest"]).toBe(sha1(body));
    expect(response?.fields["WARC-Block-Digest"]).toBe(sha1(block));
  });

  it("is marked as truncated when only the header was wanted", async () => {
    const { of } = await archived((_, response) => {
      response.writeHead(200, { "content-type": "image/png" }).end(Buffer.alloc(3000));
    });

    expect(of("response")?.fields["WARC-Truncated"]).toBe("length");
    expect(of("response")?.http["content-type"]).toBe("image/png");
  });

  it("that is unchanged by status is a revisit", async () => {
    const etag = '"7"';

    const { of } = await archived((_, response) => response.writeHead(304, { etag }).end(), { etag });

    expect(of("revisit")).toMatchObject({
      statusLine: "HTTP/1.1 304 Not Modified",
      fields: { "WARC-Profile": "http://netpreserve.org/warc/1.1/revisit/server-not-modified" },
    });
  });

  it("twice with equal bytes is a revisit that names the first", async () => {
    const { origin, of } = await archived((_, response) => html(response, "<p>the same on every page"), {
      paths: ["/a", "/b"],
    });
    const [first, revisit] = [of("response"), of("revisit")];

    expect(revisit?.fields).toMatchObject({
      "WARC-Target-URI": `${origin.url}/b`,
      "WARC-Profile": "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest",
      "WARC-Payload-Digest": first?.fields["WARC-Payload-Digest"],
      "WARC-Refers-To-Target-URI": `${origin.url}/a`,
      "WARC-Refers-To-Date": first?.fields["WARC-Date"],
    });
    expect(revisit?.content).toBe("");
  });
});

describe("statements about a page's uses", () => {
  it("follow as metadata that refers to the page, including statements from other places", async () => {
    const page = '<meta name="tdm-reservation" content="1"><p>words';
    const { origin, records, of } = await archived(
      (_, response) => html(response, page, { "content-signal": "ai-train=no\t" }),
      { paths: ["/a"], robots: "User-agent: *\nContent-Usage: /a search=n\n" },
    );

    const metadata = records.filter(({ type }) => type === "metadata");
    expect(metadata).toHaveLength(1);
    expect(metadata[0]!.fields).toMatchObject({
      "WARC-Target-URI": `${origin.url}/a`,
      "WARC-Refers-To": of("response")?.fields["WARC-Record-ID"],
      "Content-Type": "application/warc-fields",
    });
    expect(metadata[0]!.content.split("\r\n")).toEqual([
      "usage-statement: content-usage in robots.txt: search: denied: /a search=n",
      "usage-statement: content-signal in header: ai-train: denied: ai-train=no",
      "usage-statement: tdm in meta: text-and-data-mining: denied: tdm-reservation: 1",
      "usage: search=denied",
      "usage: ai-train=denied",
      "usage: text-and-data-mining=denied",
      "",
    ]);
  });

  it("make no record when there are none", async () => {
    const { records } = await archived((_, response) => html(response, "<p>words"));

    expect(records.map(({ type }) => type)).toEqual(["warcinfo", "response", "request"]);
  });
});

describe("the files", () => {
  const noise = (size: number) =>
    Buffer.from(Array.from({ length: size }, (_, at) => (at * at * 7919) % 251));
  const record = (size: number) => Buffer.concat([Buffer.from("WARC/1.1\r\n"), noise(size)]);
  function filesIn(folder: string, changes: Partial<WarcFilesSettings> = {}): WarcFiles {
    return new WarcFiles({
      folder,
      maxBytes: 1e9,
      fileBytes: 1e9,
      whenFull: "stop",
      name: "amber",
      firstRecord: (file) => Buffer.from(`WARC/1.1\r\n${file}`),
      now: () => new Date("2026-11-22T09:00:00.000Z"),
      ...changes,
    });
  }

  it("follow each other when full, each with its first record", async () => {
    const folder = freshFolder();
    const files = filesIn(folder, { fileBytes: 200 });

    for (let count = 0; count < 3; count++) await files.append([record(300)]);
    await files.close();

    const names = readdirSync(folder).sort();
    expect(names).toEqual([0, 1, 2].map((n) => `nearcrawl-amber-20261122090000000-0000${n}.warc.gz`));
    for (const name of names) {
      expect(gunzipSync(readFileSync(join(folder, name)))).toEqual(
        Buffer.concat([Buffer.from(`WARC/1.1\r\n${name}`), record(300)]),
      );
    }
  });

  it("stop at the limit and say so", async () => {
    const folder = freshFolder();
    const files = filesIn(folder, { maxBytes: 1000 });

    for (let count = 0; count < 10; count++) await files.append([record(300)]);
    await files.close();

    expect(files.stopped).toMatch(/^no more WARC is written: .* 1000 bytes allowed$/);
    expect(sizeOf(folder)).toBeLessThanOrEqual(1000);
  });

  it("lose the oldest at the limit if the partner wants that", async () => {
    const folder = freshFolder();
    const files = filesIn(folder, { maxBytes: 2000, fileBytes: 300, whenFull: "remove-oldest" });

    for (let count = 0; count < 20; count++) await files.append([record(300)]);
    await files.close();

    expect(files.stopped).toBe("");
    expect(sizeOf(folder)).toBeLessThanOrEqual(2000);
    expect(readdirSync(folder).at(-1)).toContain("-00019.warc.gz");
  });

  /** A record whose body is gzip itself, stored unchanged. */
  const bodyInBody = gzipSync(Buffer.concat([record(10), gzipSync(noise(200)), noise(50)]), { level: 0 });
  const whole = [gzipSync(record(300)), bodyInBody, gzipSync(record(20))];

  it.each([
    ["within a record", bodyInBody.subarray(0, -60)],
    ["within the body of a record", bodyInBody.subarray(0, 60)],
    ["after the first bytes of a record", gzipSync(record(300)).subarray(0, 9)],
    ["nowhere", Buffer.alloc(0)],
  ])("of a killed crawler are taken over without the torn end: %s", (_where, torn) => {
    for (let count = 1; count <= whole.length; count++) {
      const folder = freshFolder();
      const kept = Buffer.concat(whole.slice(0, count));
      writeFileSync(join(folder, "nearcrawl-amber-1-00000.warc.gz.open"), Buffer.concat([kept, torn]));

      filesIn(folder);

      expect(readdirSync(folder)).toEqual(["nearcrawl-amber-1-00000.warc.gz"]);
      expect(readFileSync(join(folder, "nearcrawl-amber-1-00000.warc.gz")).length).toBe(kept.length);
    }
  });

  it("in a folder that cannot be created are a settings error", () => {
    expect(() => filesIn("/dev/null/warc")).toThrow(ConfigError);
    expect(() => filesIn("/dev/null/warc")).toThrow(/warc\.folder: /);
  });
});

const sizeOf = (folder: string) =>
  readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);

/** SHA-1 in base 32, computed differently from the writer. */
function sha1(bytes: Buffer): string {
  const bits = [...createHash("sha1").update(bytes).digest()]
    .map((byte) => byte.toString(2).padStart(8, "0"))
    .join("");
  const letters = bits
    .match(/.{5}/g)!
    .map((five) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[Number.parseInt(five, 2)]);
  return `sha1:${letters.join("")}`;
}

/** Cuts the record of this type and URL out of the unpacked file by its Content-Length. */
function blockOf(folder: string, type: string, url: string): Buffer {
  const text = Buffer.concat(readdirSync(folder).map((name) => gunzipSync(readFileSync(join(folder, name)))));
  const latin = text.toString("latin1");
  for (const match of latin.matchAll(/WARC\/1\.1\r\n([\s\S]*?)\r\n\r\n/g)) {
    const head = match[1]!;
    if (!head.includes(`WARC-Type: ${type}\r\n`) || !head.includes(`WARC-Target-URI: ${url}\r\n`)) continue;
    const start = match.index + match[0].length;
    return text.subarray(start, start + Number(/Content-Length: (\d+)/.exec(head)![1]));
  }
  throw new Error(`no ${type} of ${url}`);
}
