/** Headless Chromium for tests of the pages. Where none is installed those tests are skipped, and say so. */
import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const executablePath = process.env.NEARCRAWL_BROWSER ?? "/usr/bin/chromium";

/** Null (said once on standard error) when there is no browser. */
export function browserPath(): string | null {
  if (existsSync(executablePath)) return executablePath;
  process.stderr.write(
    `skipped: browser tests: there is no ${executablePath} (NEARCRAWL_BROWSER names another)\n`,
  );
  return null;
}

/** Of all files of a process, with which it ends: each launch takes a second of the processor's time. */
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
