/** The settings of a crawler's folder: settings.toml and the membership together. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type CrawlerConfig, crawlerConfig } from "../settings/config.ts";
import { settingsFileConfig } from "../settings/settings-file.ts";

export const settingsFile = (home: string) => join(home, "settings.toml");

/** Without a settings file, the defaults. Throws a ConfigError with every fault. */
export function homeSettings(home: string): CrawlerConfig {
  const file = settingsFile(home);
  return existsSync(file) ? settingsFileConfig(file, { home }) : crawlerConfig({ home });
}
