/** Headless Chromium. Without it, the tests that need it are skipped with a message. */
import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const executablePath = process.env.NEARCRAWL_BROWSER ?? "/usr/bin/chromium";

/** Returns null, and says so once on standard error, when there is no browser. */
export function browserPath(): string | null {
  if (existsSync(executablePath)) return executablePath;
  process.stderr.write(
    `skipped: browser tests: there is no ${executablePath} (NEARCRAWL_BROWSER names another)\n`,
  );
  return null;
}

/** Shared by all files of a process, because each launch takes a second of processor time. */
let running: Promise<Browser> | null = null;

export async function sharedBrowser(path: string): Promise<Browser> {
  running = running !== null && (await running).isConnected() ? running : launch(path);
  return await running;
}

async function launch(executablePath: string): Promise<Browser> {
  return await chromium.launch({
    executablePath,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}
