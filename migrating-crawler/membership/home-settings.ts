/** Combines settings.toml and the membership of a crawler's folder. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type CrawlerConfig, crawlerConfig } from "../settings/config.ts";
import { settingsFileConfig } from "../settings/settings-file.ts";

export const settingsFile = (home: string) => join(home, "settings.toml");

/** Uses the defaults without a settings file. Throws a ConfigError with every fault. */
export function homeSettings(home: string): CrawlerConfig {
  const file = settingsFile(home);
  return existsSync(file) ? settingsFileConfig(file, { home }) : crawlerConfig({ home });
}
