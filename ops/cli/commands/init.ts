/** `nearcrawl init`: makes a coordinator's settings file and systemd unit from nothing. */
import { existsSync, mkdirSync, realpathSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { createInterface, type Interface } from "node:readline/promises";
import { Command } from "commander";
import { type Registry, registries } from "#coordinator/place/subnets/subnet";
import { contactFault } from "#coordinator/run/opt-outs/start";
import { UsageError } from "#core/errors";
import { checkUnitPaths, homeProtection } from "#crawler/cli/unit-command";
import { isLoopbackHost } from "#protocol/invitation";
import { sourceSettings } from "#rir-import/download/source-settings";
import { contextOfStart, usualSettingsFile } from "../command-context.ts";
import { checkedContact, contactTrouble } from "../contact.ts";
import { printAnswer } from "../output.ts";
import {
  checkedDatabaseUrl,
  type InitAnswers,
  type ScopeName,
  scopeNames,
  settingsText,
  unitFile,
} from "../setup/coordinator-settings.ts";

interface InitOptions {
  readonly contact?: string;
  readonly publicUrl?: string;
  readonly listen?: string;
  readonly tlsCertificate?: string;
  readonly tlsKey?: string;
  readonly behindProxy?: boolean;
  readonly databaseUrl?: string;
  readonly resolver?: readonly string[];
  readonly registries?: readonly string[];
  readonly scope?: string;
  readonly home?: string;
  readonly force?: boolean;
  readonly json?: boolean;
}

export function initCommand(): Command {
  return new Command("init")
    .description("write the coordinator's settings file and systemd unit; asks for what no option says")
    .option("--contact <address>", "whom webmasters can write to: an e-mail address or a URL that answers")
    .option(
      "--public-url <url>",
      "where partners and sites reach the coordinator: https://search.example.org",
    )
    .option(
      "--listen <address:port>",
      "where it listens (default: 127.0.0.1:7411; all addresses with TLS files)",
    )
    .option("--tls-certificate <file>", "PEM, with its chain; the coordinator does TLS itself")
    .option("--tls-key <file>", "PEM")
    .option("--behind-proxy", "something in front does TLS")
    .option("--database-url <url>", "a Postgres server, 15 to 18 (default: an embedded one)")
    .option("--resolver <address...>", "DNS servers as address:port (default: the system's)")
    .option(
      "--registries <name...>",
      `whose data rir fetch gets: ${registries.join(", ")}, or none (default: all)`,
    )
    .option(
      "--scope <scope>",
      "these-sites: the hosts of submitted URLs only (the default); follow-links: hosts that they link to, too",
    )
    .option("--home <folder>", "where everything is kept")
    .option("--force", "write over a settings file that is there")
    .option("--json", "print for programs; asks nothing")
    .addHelpText(
      "after",
      `
Writes coordinator.toml, nearcrawl-coordinator.service and, where registries are left out, registry-sources.json in
the home folder.
Exit codes: 0 done, 1 failed, 2 wrong or missing input, or a file is there already; then nothing is written.

Examples:
  nearcrawl init
  nearcrawl init --contact noc@example.org --public-url https://search.example.org --behind-proxy --scope follow-links
  nearcrawl init --contact noc@example.org --public-url https://search.example.org \\
    --tls-certificate /etc/nearcrawl/certificate.pem --tls-key /etc/nearcrawl/key.pem \\
    --database-url postgres://nearcrawl:PASSWORD@db.example.org/nearcrawl`,
    )
    .action(async (options: InitOptions) => await init(options));
}

async function init(given: InitOptions): Promise<void> {
  const { home } = contextOfStart({ ...(given.home === undefined ? {} : { home: given.home }) });
  const file = usualSettingsFile(home);
  if (existsSync(file) && given.force !== true)
    throw new UsageError(`${file} is there already: nearcrawl doctor checks it, --force writes over it`);
  const options = process.stdin.isTTY && given.json !== true ? await asked(given) : given;
  const { text, config } = settingsText(answersOf(options));
  const fault = contactFault(config);
  if (fault !== null)
    throw new UsageError(
      `${fault}: --contact is missing (an e-mail address, or a URL that webmasters can reach)`,
    );
  if (options.contact !== undefined) {
    const trouble = await contactTrouble(options.contact, config.resolvers);
    if (trouble !== null)
      throw new UsageError(`--contact ${options.contact}: ${trouble}; webmasters could not reach you`);
  }
  const sources = sourcesText(options);
  const { tls } = config;
  const tlsFiles = tls === null ? [] : [tls.certificateFile, tls.keyFile].map((path) => resolve(path));
  const unit = coordinatorUnit({ program: ownProgram(), home, tlsFiles });
  mkdirSync(home, { recursive: true, mode: 0o750 });
  const written = [place(file, text, 0o600), place(unitFile(home), unit, 0o644)];
  if (sources !== null) written.push(place(join(home, "registry-sources.json"), sources, 0o644));
  printAnswer(given, { home, written }, nextSteps(home, written));
}

/** Writes under another name first and renames, so that the file is complete or absent. */
function place(file: string, text: string, mode: number): string {
  writeFileSync(`${file}.new`, text, { mode });
  renameSync(`${file}.new`, file);
  return file;
}

function answersOf(options: InitOptions): InitAnswers {
  const {
    contact,
    publicUrl,
    tlsCertificate,
    tlsKey,
    behindProxy = false,
    databaseUrl,
    resolver = [],
  } = options;
  if ((tlsCertificate === undefined) !== (tlsKey === undefined))
    throw new UsageError("--tls-certificate and --tls-key go together");
  const tls =
    tlsCertificate === undefined || tlsKey === undefined
      ? null
      : { certificateFile: tlsCertificate, keyFile: tlsKey };
  if (tls !== null && behindProxy)
    throw new UsageError("--behind-proxy and TLS files contradict each other: who does TLS?");
  return {
    contact: checkedContact(contact) ?? null,
    publicUrl: publicUrl ?? null,
    listen: listenOf(options.listen ?? (tls === null ? "127.0.0.1:7411" : "[::]:443")),
    tls,
    behindProxy,
    databaseUrl: databaseUrl === undefined ? null : checkedDatabaseUrl(databaseUrl),
    resolvers: resolver,
    scope: scopeOf(options.scope ?? "these-sites"),
  };
}

function scopeOf(text: string): ScopeName {
  const known = scopeNames.find((name) => name === text);
  if (known === undefined) throw new UsageError(`--scope ${text}: must be one of ${scopeNames.join(", ")}`);
  return known;
}

function listenOf(text: string): InitAnswers["listen"] {
  const [, host, port] = /^(.+):(\d{1,5})$/.exec(text) ?? [];
  if (host === undefined) throw new UsageError(`--listen ${text}: must be ADDRESS:PORT`);
  return { host: host.replace(/^\[(.*)\]$/, "$1"), port: Number(port) };
}

/** `null` means every registry, as if there were no file. */
function sourcesText({ registries: chosen, contact }: InitOptions): string | null {
  if (chosen === undefined) return null;
  const wanted = chosen.includes("none") ? [] : chosen;
  const unknown = wanted.filter((name) => !registries.includes(name as Registry));
  if (unknown.length > 0)
    throw new UsageError(`--registries ${unknown.join(" ")}: known are ${registries.join(", ")}, none`);
  const isWanted = (registry: Registry | null) =>
    registry === null ? wanted.length > 0 : wanted.includes(registry);
  const off = sourceSettings({}, ".").sources.filter(({ registry }) => !isWanted(registry));
  const sources = Object.fromEntries(off.map(({ name }) => [name, { enabled: false }]));
  return `${JSON.stringify({ ...(contact === undefined ? {} : { contact }), sources }, null, 2)}\n`;
}

function ownProgram(): readonly string[] {
  return [process.execPath, realpathSync(process.argv[1] ?? "")];
}

/** Asks for what the options do not state. An empty answer means the default. */
async function asked(given: InitOptions): Promise<InitOptions> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await ask(terminal, given);
  } finally {
    terminal.close();
  }
}

async function ask(terminal: Interface, given: InitOptions): Promise<InitOptions> {
  const answer = async (question: string) => (await terminal.question(`${question}\n> `)).trim();
  const text = async (known: string | undefined, question: string) => {
    const said = known ?? (await answer(question));
    return said === "" ? undefined : said;
  };
  const contact = await text(given.contact, "Whom can webmasters write to? An e-mail address or a URL.");
  const publicUrl = await text(
    given.publicUrl,
    "Where will partners reach the coordinator, such as https://search.example.org? Empty: only from this machine.",
  );
  const knowsTls = given.tlsCertificate !== undefined || given.behindProxy === true;
  const isPublic = publicUrl !== undefined && !isLoopbackHost(new URL(publicUrl).hostname);
  const tls =
    isPublic && !knowsTls
      ? await answer(
          "Who does TLS? Empty: a proxy in front. Else the certificate's file (PEM, with its chain).",
        )
      : "";
  const tlsCertificate = given.tlsCertificate ?? (tls === "" ? undefined : tls);
  const tlsKey = await (tlsCertificate === undefined
    ? undefined
    : text(given.tlsKey, "The key's file (PEM)."));
  const behindProxy = given.behindProxy ?? (isPublic && tlsCertificate === undefined);
  const databaseUrl = await text(
    given.databaseUrl,
    "The Postgres server (postgres://user:password@host/database)? Empty: an embedded one.",
  );
  const named =
    given.registries ??
    (await answer(`Whose registry data? Some of ${registries.join(" ")}, or none. Empty: all of them.`))
      .split(/[\s,]+/)
      .filter((name) => name !== "");
  const scope = await text(
    given.scope,
    "What is crawled? these-sites: the hosts of the URLs that you submit. follow-links: the hosts that they link to, too, and so on.\nEmpty: these-sites.",
  );
  const defined = { contact, publicUrl, tlsCertificate, tlsKey, databaseUrl, scope };
  const answers = Object.fromEntries(Object.entries(defined).filter(([, value]) => value !== undefined));
  return { ...given, ...answers, behindProxy, ...(named.length === 0 ? {} : { registries: named }) };
}

function nextSteps(home: string, written: readonly string[]): string {
  const isSystem = home === "/var/lib/nearcrawl";
  return [
    ...written.map((file) => `written: ${file}`),
    "",
    "next, by hand:    nearcrawl doctor, then nearcrawl coordinator",
    ...(isSystem
      ? [
          "or by systemd:    useradd --system --home-dir /var/lib/nearcrawl --shell /usr/sbin/nologin nearcrawl",
          "                  chown -R nearcrawl: /var/lib/nearcrawl",
          `                  cp ${unitFile(home)} /etc/systemd/system/`,
          "                  systemctl enable --now nearcrawl-coordinator",
        ]
      : [`the systemd unit is for a system's folder: nearcrawl init --home /var/lib/nearcrawl, as root`]),
    "then:             nearcrawl rir fetch && nearcrawl rir apply --cache    (the registries; not needed to begin)",
    "                  nearcrawl fleet invite --name NAME                     (a crawler)",
    "                  nearcrawl urls add URL…                                (something to crawl)",
    "the whole story:  ops/runbook/deploying.md",
  ].join("\n");
}

// Writes the coordinator's systemd unit for a machine's paths. `ops/systemd/nearcrawl-coordinator.service` has the usual paths.

interface CoordinatorPaths {
  /** A program, or Node and a script. */
  readonly program: readonly string[];
  readonly home: string;
  /** Certificate and key, if the coordinator serves TLS itself. */
  readonly tlsFiles?: readonly string[];
}

export const usualCoordinatorPaths: CoordinatorPaths = {
  program: ["/usr/bin/nearcrawl"],
  home: "/var/lib/nearcrawl",
};

/** Throws a UsageError for a path that a unit file cannot express. */
export function coordinatorUnit({ program, home, tlsFiles = [] }: CoordinatorPaths): string {
  checkUnitPaths(...program, home);
  // A renewed certificate is a new file, so its whole folder must be readable.
  const readOnly = [...program.map(packageOf), ...tlsFiles.map((file) => dirname(file))];
  return unit
    .replaceAll("{protectHome}", homeProtection({ readOnly, writable: [home] }).join("\n"))
    .replaceAll("{program}", program.join(" "))
    .replaceAll("{home}", home);
}

/** The folder of packages that one of our files needs, the embedded Postgres included: around it, or beside its own. */
function packageOf(file: string): string {
  return (
    /^(\/.*?\/node_modules)\/nearcrawl\/dist\//.exec(file)?.[1] ??
    /^(\/.*)\/dist\/ops\/cli\//.exec(file)?.[1] ??
    file
  );
}

const unit = `# The coordinator of Nearcrawl. Settings: {home}/coordinator.toml (nearcrawl init writes it).
#
#   user:     useradd --system --home-dir {home} --shell /usr/sbin/nologin nearcrawl
#   start:    systemctl enable --now nearcrawl-coordinator
#   look:     nearcrawl doctor --home {home}; journalctl -u nearcrawl-coordinator
#   commands: as this user, such as  sudo -u nearcrawl {program} overview --home {home}
# The whole story: ops/runbook/deploying.md
[Unit]
Description=Nearcrawl: coordinator
Wants=network-online.target
After=network-online.target postgresql.service
StartLimitIntervalSec=10min
StartLimitBurst=10

[Service]
Type=exec
User=nearcrawl
Group=nearcrawl
Environment=NODE_ENV=production NEARCRAWL_HOME={home}
ExecStart={program} coordinator
# Leases and results in hand are finished and the sessions closed; the embedded Postgres is stopped after that.
KillMode=mixed
TimeoutStopSec=90s
# Wrong settings (2) are fixed by no restart; a database that is away for a while is.
Restart=on-failure
RestartSec=5s
RestartPreventExitStatus=2
# A coordinator whose process takes no turn for so long is ended and started again; systemd-notify tells that it does.
WatchdogSec=5min
NotifyAccess=all
LimitNOFILE=65536
LimitCORE=0
UMask=0027
ReadWritePaths={home}

NoNewPrivileges=yes
# A port below 1024, where the coordinator does TLS itself.
AmbientCapabilities=CAP_NET_BIND_SERVICE
CapabilityBoundingSet=CAP_NET_BIND_SERVICE
ProtectSystem=strict
{protectHome}
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service

[Install]
WantedBy=multi-user.target
`;
