/**
 * `npm run pictures` retakes the README's pictures. It starts the whole system on a small emulated Internet, waits
 * until that is crawled, signs in as an operator and photographs the pages. It needs Chromium (or NEARCRAWL_BROWSER)
 * and about four minutes on two cores.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type BrowserContext, chromium } from "playwright-core";

const pictures = fileURLToPath(new URL(".", import.meta.url));
const entry = fileURLToPath(new URL("../cli/main.ts", import.meta.url));
const nearcrawl = ["--conditions=nearcrawl-source", "--import", "tsx", entry];
const world = ["--sites", "200", "--crawlers", "10", "--seed", "3"];

/** Matches the final table, which appears when everything has been crawled. */
const runIsOver = /^policy +figures/m;
const mostMinutes = 12;
/** Figures are written every minute, so the history needs some time to show more than a dot. */
const historyMs = 150_000;
const size = { width: 1400, height: 900 };

interface Picture {
  readonly name: string;
  /** Receives the URL and host of a crawled page. */
  readonly path: (page: CrawledPage) => string;
  readonly colours?: "light" | "dark";
  readonly narrow?: boolean;
}

interface CrawledPage {
  readonly url: string;
  readonly host: string;
  readonly words: string;
}

const wanted: readonly Picture[] = [
  { name: "overview", path: () => "/" },
  { name: "who", path: ({ url }) => `/who?q=${encodeURIComponent(url)}` },
  { name: "explore", path: () => "/explore", colours: "dark" },
  { name: "search", path: ({ words }) => `/search?q=${encodeURIComponent(words)}` },
  { name: "fleet", path: () => "/fleet" },
  { name: "policies", path: () => "/policies", colours: "dark" },
  { name: "overview-narrow", path: () => "/", narrow: true },
];

const home = mkdtempSync(join(tmpdir(), "nearcrawl-pictures-"));
const system = spawn(process.execPath, [...nearcrawl, "up", ...world, "--port", "7511", "--home", home], {
  stdio: ["ignore", "pipe", "inherit"],
});
try {
  await untilCrawled(system);
  await setTimeout(historyMs);
  await takeAll(await signInLink());
} finally {
  system.kill("SIGINT");
  await new Promise((resolve) => (system.exitCode === null ? system.once("exit", resolve) : resolve(null)));
  rmSync(home, { recursive: true, force: true });
}

async function untilCrawled(child: ChildProcess): Promise<void> {
  let said = "";
  await new Promise<void>((resolve, reject) => {
    const timer = globalThis.setTimeout(
      () => reject(new Error(`not crawled after ${mostMinutes} min`)),
      mostMinutes * 60_000,
    );
    child.once("exit", (code) => reject(new Error(`the system ended with ${code}:\n${said}`)));
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      process.stdout.write(text);
      said += text;
      if (!runIsOver.test(said)) return;
      clearTimeout(timer);
      resolve();
    });
  });
}

async function signInLink(): Promise<URL> {
  const out = await output([
    ...nearcrawl,
    "sign-in",
    "--role",
    "operator",
    "--name",
    "anna",
    "--json",
    "--home",
    home,
  ]);
  return new URL((JSON.parse(out) as { url: string }).url);
}

function output(args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [...args], (error, stdout) => (error ? reject(error) : resolve(stdout)));
  });
}

async function takeAll(link: URL): Promise<void> {
  const executablePath = process.env.NEARCRAWL_BROWSER ?? "/usr/bin/chromium";
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
  try {
    const context = await browser.newContext({ baseURL: link.origin });
    const page = await context.newPage();
    await page.goto(link.href);
    await page.getByRole("button", { name: "Sign in" }).click();
    const state = await context.storageState();
    const crawled = await crawledPage(context);
    for (const picture of wanted) {
      const taken = await browser.newContext({
        baseURL: link.origin,
        storageState: state,
        colorScheme: picture.colours ?? "light",
        viewport: picture.narrow ? { width: 400, height: 900 } : size,
        locale: "en-GB",
        timezoneId: "UTC",
      });
      await take(taken, picture, crawled);
      await taken.close();
    }
  } finally {
    await browser.close();
  }
}

async function take(context: BrowserContext, picture: Picture, crawled: CrawledPage): Promise<void> {
  const page = await context.newPage();
  await page.goto(picture.path(crawled));
  // The live overview never becomes idle. A map is complete when its tiles have loaded.
  await page.waitForLoadState(picture.path(crawled) === "/" ? "load" : "networkidle");
  const file = join(pictures, `${picture.name}.png`);
  await page.screenshot({ path: file });
  process.stdout.write(`${file}\n`);
}

/** The page fetched last, with words of it that find other pages too. */
async function crawledPage(context: BrowserContext): Promise<CrawledPage> {
  const found = await context.request.get(
    "/api/search?q=harbour%20or%20market%20or%20garden%20or%20news&limit=5",
  );
  const { pages } = (await found.json()) as { pages: { url: string; host: string; title: string }[] };
  const [first] = pages;
  if (!first) throw new Error("nothing was crawled that could be shown");
  const words = first.title.split(/[^\p{L}]+/u).filter(({ length }) => length > 3);
  return { url: first.url, host: first.host, words: words.slice(0, 2).join(" ") };
}
