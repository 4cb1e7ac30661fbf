/** A settings file: one JSON object. What it may hold is checked by the config of the coordinator or crawler. */
import { readFileSync } from "node:fs";
import { ConfigError } from "#core/errors";

/** Throws a ConfigError that names the file. */
export function readSettings(file: string): Record<string, unknown> {
  try {
    const settings: unknown = JSON.parse(readFileSync(file, "utf8"));
    if (typeof settings === "object" && settings !== null && !Array.isArray(settings)) return { ...settings };
  } catch (error) {
    throw new ConfigError([`${file}: ${error instanceof Error ? error.message : String(error)}`]);
  }
  throw new ConfigError([`${file}: must hold one JSON object`]);
}
