/** The coordinator's systemd unit with a machine's paths; `ops/systemd/nearcrawl-coordinator.service` has the usual ones. */
import { dirname } from "node:path";
import { checkUnitPaths, homeProtection } from "#crawler/cli/unit-command";

interface CoordinatorPaths {
  /** A program, or Node and a file. */
  readonly program: readonly string[];
  readonly home: string;
  /** Certificate and key, when the coordinator serves TLS itself. */
  readonly tlsFiles?: readonly string[];
}

export const usualCoordinatorPaths: CoordinatorPaths = {
  program: ["/usr/bin/nearcrawl"],
  home: "/var/lib/nearcrawl",
};

/** Throws a UsageError for a path that a unit cannot hold. */
export function coordinatorUnit({ program, home, tlsFiles = [] }: CoordinatorPaths): string {
  checkUnitPaths(...program, home);
  // A renewed certificate is a new file, so its folder must be readable.
  const readOnly = [...program.map(packageOf), ...tlsFiles.map((file) => dirname(file))];
  return unit
    .replaceAll("{protectHome}", homeProtection({ readOnly, writable: [home] }).join("\n"))
    .replaceAll("{program}", program.join(" "))
    .replaceAll("{home}", home);
}

/** The packages that a file of ours needs, including the embedded Postgres: around it, or beside its own. */
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
