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

export async function startBrowser(path: string): Promise<Browser> {
  return await chromium.launch({
    executablePath: path,
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
