/** The local page over a real socket: what it shows, and who cannot read or use it. */
import { createServer, type IncomingHttpHeaders, request } from "node:http";
import { parse } from "node-html-parser";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { quietLog } from "#crawler/core/log";
import { PageServer } from "#crawler/status/open-status";
import { statusPage } from "#crawler/status/status-page";
import type { StatusReport } from "#crawler/status/status-report";
import { atEnd } from "../../support/at-end.ts";
import { until } from "../../support/until.ts";
import { onLoopback } from "../support/loopback.ts";
import { failure, sampleReport } from "./sample-report.ts";

/** The first thread of a run is bundled from sources, which takes time. */
const soonMs = 15_000;

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

function ask(
  port: number,
  path: string,
  { method = "GET", host = `127.0.0.1:${port}` } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    request({ host: "127.0.0.1", port, path, method, headers: { host }, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece) => (text += piece));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
      );
    })
      .on("error", reject)
      .end();
  });
}

describe("the local page", () => {
  const errors = { today: { target: 1, network: 0, crawler: 0, us: 0 }, latest: [failure] };
  let port: number;
  beforeAll(async () => {
    page = new PageServer({ port: 0, report: () => sampleReport({ errors }), log: quietLog });
    await until(() => page.port !== null, soonMs);
    port = page.port!;
  });
  afterAll(() => page.close());
  let page: PageServer;

  it("looks again by itself, and stays as it is for whoever wishes so", async () => {
    const [live, still] = [await ask(port, "/"), await ask(port, "/?still")];

    expect([live.headers.refresh, still.headers.refresh]).toEqual(["5", undefined]);
    expect(parse(live.text).querySelector('footer a[href="/?still"]')).not.toBeNull();
    expect(parse(still.text).querySelector('footer a[href="/"]')).not.toBeNull();
  });

  it("shows the state, each limit with a bar as long as its use, and the errors", async () => {
    const page = parse((await ask(port, "/")).text);

    expect(page.querySelector("h1")?.text).toContain("Crawling: 2 sites open");
    const [pages, month] = page.querySelectorAll(".limit");
    expect(pages?.querySelector("rect")?.getAttribute("width")).toBe("25");
    expect(pages?.text).toContain("50 of 200 pages");
    expect(month?.querySelector("svg")).toBeNull();
    expect(page.querySelector(".errors")?.text).toMatch(/a\.example:\s+the certificate has expired/);
    expect(page.querySelector(".days")?.text).toContain("880 of 900");
    expect(page.text).toContain("929 pages, of 950 URLs");
    expect(page.text).toContain("What hosting it means");
  });

  it("runs nothing and loads nothing, whatever sites and coordinators say", () => {
    const words = `<script>alert(1)</script><img src=x onerror="alert(2)">`;
    const coordinator = {
      ...sampleReport().coordinator,
      contactPage: "javascript:alert(3)",
      userAgent: words,
    };
    const latest = [{ ...failure, words, host: `"><b>` }];
    const report = sampleReport({
      words,
      coordinator,
      holdingBack: [words],
      errors: { ...sampleReport().errors, latest },
    });

    const page = parse(statusPage(report));

    expect(page.querySelectorAll("script, img, b, iframe, form, link, [onerror], [style]")).toEqual([]);
    expect(page.querySelectorAll("a").map((link) => link.getAttribute("href"))).toEqual([
      "/?still",
      "/status.json",
    ]);
    expect(page.querySelector(".held li")?.text).toBe(words);
  });

  it("is not to be framed, sniffed, loaded by other origins, or to load anything itself", async () => {
    const { headers } = await ask(port, "/");

    expect(headers["content-security-policy"]).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+';.*frame-ancestors 'none'$/,
    );
    expect(headers).toMatchObject({
      "cross-origin-resource-policy": "same-origin",
      "x-frame-options": "DENY",
      "x-content-type-options": "nosniff",
      "cache-control": "no-store",
    });
    expect(headers["access-control-allow-origin"]).toBeUndefined();
  });

  it("answers under its own names alone: a name that was turned to 127.0.0.1 reads nothing", async () => {
    const names = [
      "evil.example",
      `evil.example:${port}`,
      `127.0.0.1.evil.example:${port}`,
      "127.0.0.1",
      "localhost:80",
    ];

    const foreign = await Promise.all(names.map((host) => ask(port, "/status.json", { host })));
    const own = await ask(port, "/status.json", { host: `localhost:${port}` });

    expect(foreign.map(({ status }) => status)).toEqual([421, 421, 421, 421, 421]);
    for (const { text } of foreign) expect(text).not.toContain("amber");
    expect(JSON.parse(own.text)).toMatchObject({ statusVersion: 1, crawler: { name: "amber" } });
  });

  it("cannot be used to change anything", async () => {
    const answers = await Promise.all(
      ["/pause", "/resume", "/drain", "/"].map((path) => ask(port, path, { method: "POST" })),
    );
    const asked = await Promise.all(["/pause", "/log", "/../etc/passwd"].map((path) => ask(port, path)));

    expect(answers.map(({ status }) => status)).toEqual([405, 405, 405, 405]);
    expect(asked.map(({ status }) => status)).toEqual([404, 404, 404]);
  });

  it("pauses and resumes by the link that its owner has, and by nothing else", async () => {
    const deeds: string[] = [];
    const steered = {
      pause: (reason: string) => void deeds.push(`pause ${reason}`),
      resume: () => void deeds.push("resume"),
    };
    const page = new PageServer({ port: 0, report: sampleReport, steered, log: quietLog });
    atEnd(() => page.close());
    await until(() => page.url !== null, soonMs);
    const { port, url } = page;
    const key = new URL(url!).searchParams.get("key")!;
    const send = async (path: string, body: string, headers: Record<string, string> = {}) =>
      await fetch(`http://127.0.0.1:${port}${path}`, {
        method: "POST",
        body,
        redirect: "manual",
        headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
      });

    const seen = parse((await ask(port!, `/?key=${key}`)).text);
    const others = parse((await ask(port!, "/?key=guessed")).text);
    const refused = [
      await send("/pause", "key=guessed"),
      await send("/pause", ""),
      await send("/resume", `key=${key}`, { "content-type": "text/plain" }),
      await send("/pause", `key=${key}&more=${"x".repeat(5000)}`),
      await send("/drain", `key=${key}`),
      await send("/pause", `key=${key}`, { "sec-fetch-site": "cross-site" }),
      await send("/pause", `key=${key}`, { "sec-fetch-site": "same-site" }),
      await send("/pause", `key=${key}`, { origin: "http://evil.example" }),
      await send("/pause", `key=${key}`, { origin: "null" }),
    ];
    const paused = await send("/pause", `key=${key}`);
    await send("/resume", `key=${key}`);

    expect(seen.querySelector("form.steer button")?.text).toBe("Pause");
    expect(others.querySelectorAll("form")).toEqual([]);
    expect(refused.map(({ status }) => status)).toEqual([403, 403, 403, 403, 405, 403, 403, 403, 403]);
    expect([paused.status, paused.headers.get("location")]).toEqual([303, `/?key=${key}`]);
    expect(deeds).toEqual(["pause on the local page", "resume"]);
    expect((await ask(port!, "/status.json")).text).not.toContain(key);
  });

  it("that ends by an error nobody caught takes nothing else with it, and is begun again", async () => {
    const warnings: string[] = [];
    const log = { ...quietLog, warn: (_fields: unknown, words: string) => void warnings.push(words) };
    const port = -1; // listen() throws for this port

    const page = new PageServer({ port, report: sampleReport, log });
    atEnd(() => page.close());
    await until(() => warnings.length >= 2, soonMs);

    expect(new Set(warnings)).toEqual(new Set(["the local status page has failed"]));
    expect(page.url).toBeNull();
  });

  it("answers what cannot be shown with an error, and goes on", async () => {
    let report: () => StatusReport = () => {
      throw new Error("nothing to report");
    };
    const page = new PageServer({ port: 0, report: () => report(), log: quietLog });
    atEnd(() => page.close());
    await until(() => page.port !== null, soonMs);
    const { port } = page;

    const broken = await ask(port!, "/");
    report = sampleReport;
    await until(async () => (await ask(port!, "/")).status === 200, soonMs);

    expect([broken.status, broken.text]).toEqual([500, "nothing to report\n"]);
    expect(page.port).toBe(port);
  });

  it("takes the next port where another crawler keeps the first", async () => {
    const { port } = await onLoopback(createServer());
    const page = new PageServer({ port, report: sampleReport, log: quietLog, retryMs: 5 });
    atEnd(() => page.close());

    await until(() => page.port !== null, soonMs);

    expect(page.port).toBeGreaterThan(port);
  });

  it("waits for a port that the process before it still holds", async () => {
    const other = await onLoopback(createServer());
    const { port } = other;
    const page = new PageServer({ port, report: sampleReport, log: quietLog, retryMs: 20 });
    atEnd(() => page.close());

    await other.close();
    await until(() => page.port !== null, soonMs);

    expect((await ask(port, "/")).status).toBe(200);
  });
});
