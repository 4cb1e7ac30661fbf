/**
 * The weight of every page of a running coordinator, and how long its server takes: bytes as HTML and as they are sent to a
 * browser that takes Brotli, and the time from the request to the last byte on this machine, the median and the 95th of all
 * asked one after the other. Pages are those of the navigation, and those named as arguments; what answers with no page is said.
 * Run: npm run bench -- pages --link "$(nearcrawl sign-in --json | node -pe 'JSON.parse(fs.readFileSync(0)).url')" [--asks 20] [PATH ...]
 */
import { request } from "node:http";
import { parseArgs } from "node:util";
import { brotliDecompressSync } from "node:zlib";
import { navigation } from "#coordinator/web/navigation";
import { formatTable } from "#ops/cli/output";
import { figure } from "./figure.ts";

const { values: options, positionals } = parseArgs({
  options: { link: { type: "string" }, asks: { type: "string", default: "20" } },
  allowPositionals: true,
});
if (options.link === undefined)
  throw new Error("--link URL: a sign-in link of the coordinator, not used yet");
const link = new URL(options.link);
const asks = Number(options.asks);
const cookie = await signIn(link);
const tabs = navigation.flatMap(({ entries }) => entries.flatMap((entry) => entry.tabs ?? [entry]));
const rows: string[][] = [];
for (const path of [...new Set([...tabs.map((tab) => tab.path), ...positionals])]) {
  const times: number[] = [];
  let seen = await ask(path);
  for (let nth = 0; nth < asks && seen.status === 200; nth++) {
    const beganMs = performance.now();
    seen = await ask(path);
    times.push(performance.now() - beganMs);
  }
  if (seen.status !== 200) {
    rows.push([path, `answers ${seen.status}`, "", "", ""]);
    continue;
  }
  times.sort((a, b) => a - b);
  const [median, p95] = [times[Math.floor(asks / 2)]!, times[Math.floor(0.95 * asks)]!];
  const html = seen.coding === "br" ? brotliDecompressSync(seen.body) : seen.body;
  const kilobytes = (bytes: number) => (bytes / 1000).toFixed(1);
  rows.push([path, kilobytes(html.length), kilobytes(seen.body.length), median.toFixed(1), p95.toFixed(1)]);
  figure(`${path}, median`, median, "ms");
}
const titles = ["page", "HTML kB", "sent kB", "ms, median", "95th"];
console.log(
  formatTable(
    titles.map((title, at) => ({ title, align: at === 0 ? "left" : "right" })),
    rows,
  ),
);

interface Seen {
  readonly status: number;
  readonly coding: string | undefined;
  readonly cookies: readonly string[];
  readonly body: Buffer;
}

/** As a page of the coordinator itself asks, which is what makes its answers compressed. */
function ask(path: string, form: string | null = null): Promise<Seen> {
  const headers = {
    accept: "text/html",
    "accept-encoding": "br",
    "sec-fetch-site": "same-origin",
    ...(form === null ? { cookie } : { "content-type": "application/x-www-form-urlencoded" }),
  };
  return new Promise((resolve, reject) => {
    const { hostname, port } = link;
    request({ hostname, port, path, method: form === null ? "GET" : "POST", headers }, (response) => {
      const pieces: Buffer[] = [];
      response.on("data", (piece: Buffer) => pieces.push(piece));
      response.on("error", reject);
      response.on("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          coding: response.headers["content-encoding"],
          cookies: response.headers["set-cookie"] ?? [],
          body: Buffer.concat(pieces),
        }),
      );
    })
      .on("error", reject)
      .end(form ?? undefined);
  });
}

async function signIn({ pathname }: URL): Promise<string> {
  const secret = decodeURIComponent(pathname.slice(pathname.lastIndexOf("/") + 1));
  const { status, cookies } = await ask("/sign-in", new URLSearchParams({ link: secret }).toString());
  const [session] = cookies.map((one) => one.split(";")[0]!);
  if (session === undefined) throw new Error(`${pathname}: the link signs nobody in (${status})`);
  return session;
}
