/**
 * What the dock itself needs of HOME/settings.toml: the partner's policy for releases, the way to the coordinator,
 * and the files and folders outside the home that the crawler may touch. Whatever else stands there is for the
 * crawler's release to check: a dock is older than the releases that it runs, and must not stumble over new names.
 */
import { existsSync, realpathSync } from "node:fs";
import { join, resolve } from "node:path";
import { z } from "zod";
import { ConfigError } from "#core/errors";
import { coordinatorRoute } from "../membership/coordinator-route.ts";
import type { Membership } from "../membership/membership.ts";
import type { CoordinatorRoute } from "../net/coordinator-socket.ts";
import { parseProxy } from "../settings/config.ts";
import { readSettingsFile } from "../settings/settings-file.ts";
import { releasesFolder } from "./release-pins.ts";
import { type ReleasePolicy, releasePolicy } from "./release-policy.ts";

const path = z.string().min(1).max(4096).nullable().default(null);
const proxy = z.string().refine((text) => parseProxy(text) !== null, { error: "is not a proxy's address" });

const dockSettings = z.object({
  releases: releasePolicy.prefault({}),
  proxy: proxy.nullable().default(null),
  coordinatorProxy: z.union([z.enum(["as-sites", "none"]), proxy]).default("as-sites"),
  certificateFile: path,
  coordinatorCertificateFile: path,
  /** A wrong port is for the crawler's release to tell. */
  status: z
    .object({ port: z.int().min(1).max(65_535).nullable().default(null) })
    .catch({ port: null })
    .prefault({}),
  warc: z
    .object({ folder: z.string().min(1).max(4096) })
    .nullable()
    .default(null),
});

export interface DockedSettings {
  readonly policy: ReleasePolicy;
  /** Of the local page; null: none is wanted. */
  readonly statusPort: number | null;
  readonly route: () => CoordinatorRoute;
  /** Files that the crawler may read besides its home. */
  readonly readable: readonly string[];
  /** Folders that it may write besides its home. */
  readonly writable: readonly string[];
}

/** Throws a ConfigError that names the file and every fault. */
export function readDockSettings(home: string, membership: Membership): DockedSettings {
  const file = join(home, "settings.toml");
  const checked = dockSettings.safeParse(existsSync(file) ? readSettingsFile(file) : {});
  if (!checked.success) {
    throw new ConfigError(
      checked.error.issues.map((issue) => `${file}: ${issue.path.join(".")}: ${issue.message}`),
    );
  }
  const { releases, certificateFile, coordinatorCertificateFile, status, warc, ...ways } = checked.data;
  const { coordinatorUrl } = membership;
  if (warc !== null && reachesDockFiles(home, warc.folder)) {
    throw new ConfigError([
      `${file}: warc.folder: in ${warc.folder} the crawler could write what its dock goes by: choose a folder of its own, such as ${join(home, "archive")}`,
    ]);
  }
  return {
    policy: releases,
    statusPort: status.port,
    route: () => coordinatorRoute({ ...ways, coordinatorCertificateFile, coordinatorUrl }, membership),
    readable: [certificateFile, coordinatorCertificateFile]
      .filter((name) => name !== null)
      .map((name) => resolve(name)),
    writable: warc === null ? [] : [resolve(warc.folder)],
  };
}

/** The home or what it lies in, the dock's releases, its log. */
function reachesDockFiles(home: string, folder: string): boolean {
  const real = existsSync(folder) ? realpathSync(folder) : resolve(folder);
  const below = (path: string, parent: string) => `${path}/`.startsWith(parent === "/" ? "/" : `${parent}/`);
  return below(home, real) || [releasesFolder(home), join(home, "log")].some((own) => below(real, own));
}
