/** `unit` prints the systemd unit for this machine's paths. */
import { existsSync, realpathSync } from "node:fs";
import { resolve } from "node:path";
import { UsageError } from "#core/errors";
import { type PartnerContext, type PartnerExitCode, partnerExitCodes } from "../core/partner-context.ts";

/** `program` defaults to the running program's own file, if that is the one-file program. */
export async function unitCommand(
  context: PartnerContext,
  { program, user = false }: { readonly program?: string; readonly user?: boolean },
): Promise<PartnerExitCode> {
  const file = program ?? /\S+\.mjs$/.exec(context.program)?.[0] ?? usualPaths.program;
  // A unit that hides personal folders cannot follow a link into one, so the path is resolved.
  const paths = { node: process.execPath, program: existsSync(file) ? realpathSync(file) : resolve(file) };
  const unit = user ? userUnit({ ...paths, home: resolve(context.home) }) : systemdUnit(paths);
  context.print(unit.trimEnd());
  return partnerExitCodes.done;
}

// Fills this machine's paths into the crawler's systemd unit. `ops/systemd/nearcrawl-crawler.service` is the same text with
// the usual paths. With DynamicUser, systemd creates a user while the service runs, and that user owns only the folder below
// /var/lib.

interface UnitPaths {
  readonly node: string;
  readonly program: string;
}

export const usualPaths: UnitPaths = {
  node: "/usr/bin/node",
  program: "/usr/local/lib/nearcrawl/nearcrawl-crawler.mjs",
};

export function checkUnitPaths(...paths: readonly string[]): void {
  for (const path of paths) {
    if (/^\/[\w./@+-]+$/.test(path)) continue;
    throw new UsageError(`${path}: a unit needs an absolute path without blanks and special characters`);
  }
}

/** A temporary folder will not do: a unit has its own, and the machine's are cleared. */
function checkIsLasting(program: string): void {
  if (!/^\/(tmp|var\/tmp|dev\/shm)\//.test(program)) return;
  const advice = `move it, to ${usualPaths.program} for example`;
  throw new UsageError(`${program}: no service can be started from a temporary folder; ${advice}`);
}

interface SeenPaths {
  readonly readOnly: readonly string[];
  readonly writable?: readonly string[];
}

/**
 * Hides personal folders (/home, /root, /run/user) from a unit, except these paths, each of which appears in an otherwise
 * empty folder that any user may enter. `ProtectHome=yes` would hide the program itself (203/EXEC).
 */
export function homeProtection({ readOnly, writable = [] }: SeenPaths): readonly string[] {
  const inHomes = (paths: readonly string[]) => [
    ...new Set(paths.filter((path) => /^\/(home|root|run\/user)\//.test(path)).map(withItsLibraries)),
  ];
  const [read, written] = [inHomes(readOnly), inHomes(writable)];
  if (read.length + written.length === 0) return ["ProtectHome=yes"];
  return [
    "ProtectHome=tmpfs",
    ...(read.length === 0 ? [] : [`BindReadOnlyPaths=${read.join(" ")}`]),
    ...(written.length === 0 ? [] : [`BindPaths=${written.join(" ")}`]),
  ];
}

/** Homebrew's programs need libraries from all over its folder, which is not personal. */
const withItsLibraries = (path: string) => /^\/home\/linuxbrew\/\.linuxbrew(?=\/)/.exec(path)?.[0] ?? path;

export function systemdUnit(paths: UnitPaths): string {
  const { node, program } = paths;
  checkUnitPaths(node, program);
  for (const path of [node, program]) checkIsLasting(path);
  const home = homeProtection({ readOnly: [node, program] });
  // DynamicUser alone makes personal folders read-only and does not open those that are inaccessible.
  const joining = home.length === 1 ? "" : `${home.map((line) => `-p "${line}"`).join(" ")} `;
  return unit
    .replaceAll("{joining}", joining)
    .replaceAll("{home}", home.join("\n"))
    .replaceAll("{node}", node)
    .replaceAll("{program}", program);
}

/** Makes a unit for an ordinary user's systemd, which isolates the crawler less than the system's can. */
function userUnit({ node, program, home }: UnitPaths & { readonly home: string }): string {
  checkUnitPaths(node, program, home);
  checkIsLasting(program);
  return `# A crawler of Nearcrawl, under this user; its limits are in ${home}/settings.toml.
[Unit]
Description=Nearcrawl: crawler

[Service]
Type=exec
Environment=NODE_ENV=production
ExecStart=${node} ${program} run --home ${home}
KillMode=mixed
TimeoutStopSec=45s
# Left for good (0), wrong settings or folder (2): starting again fixes nothing.
Restart=on-failure
RestartSec=30s
RestartPreventExitStatus=2
Nice=19
MemoryMax=1G
TasksMax=128
NoNewPrivileges=yes
UMask=0077

[Install]
WantedBy=default.target
`;
}

const unit = `# A crawler of Nearcrawl, as a guest on this machine: a user of its own that exists only while it runs, one folder that
# it may write (/var/lib/nearcrawl-crawler), outbound connections alone, no privilege of any kind.
#
#   join:     systemd-run --pipe --wait -p User=nearcrawl-crawler -p DynamicUser=yes \\
#               -p StateDirectory=nearcrawl-crawler -p StateDirectoryMode=0700 {joining}{node} {program} join TOKEN
#   start:    systemctl enable --now nearcrawl-crawler
#   look:     {node} {program} status --home /var/lib/nearcrawl-crawler; journalctl -u nearcrawl-crawler
#   settings: /var/lib/nearcrawl-crawler/settings.toml (a change counts at once)
#   away:     systemctl disable --now nearcrawl-crawler; {node} {program} uninstall --home /var/lib/nearcrawl-crawler
#             (as root; it leaves and empties the folder as the crawler's user, whose folder it is)
[Unit]
Description=Nearcrawl: crawler
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=1h
StartLimitBurst=20

[Service]
Type=exec
User=nearcrawl-crawler
DynamicUser=yes
StateDirectory=nearcrawl-crawler
StateDirectoryMode=0700
UMask=0077
Environment=NODE_ENV=production
ExecStart={node} {program} run --home \${STATE_DIRECTORY}
# SIGTERM goes to the supervisor, which stops the crawler in order; remaining processes are killed.
KillMode=mixed
TimeoutStopSec=45s
# Left for good (0), wrong settings or folder (2): starting again fixes nothing. Refused by the
# coordinator it goes on, and asks again by itself.
Restart=on-failure
RestartSec=30s
RestartPreventExitStatus=2

# A guest gives way. The crawler's own limits are in settings.toml; these hold whatever it does.
Nice=19
IOSchedulingClass=idle
CPUWeight=20
CPUQuota=100%
MemoryHigh=768M
MemoryMax=1G
MemorySwapMax=0
TasksMax=128
LimitNOFILE=4096
LimitCORE=0

NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
{home}
PrivateTmp=yes
PrivateDevices=yes
PrivateUsers=yes
PrivateIPC=yes
PrivateMounts=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RemoveIPC=yes
KeyringMode=private
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
# The status page of settings.toml ([status] port, 7412, on 127.0.0.1 alone) is all that may listen.
SocketBindAllow=ipv4:tcp:7412
SocketBindDeny=tcp
DevicePolicy=closed
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @chown @keyring @memlock @setuid
SystemCallErrorNumber=EPERM
# Not MemoryDenyWriteExecute: the JavaScript engine compiles at run time.

[Install]
WantedBy=multi-user.target
`;
