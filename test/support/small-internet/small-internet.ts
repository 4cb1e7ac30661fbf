/**
 * A small Internet on one machine: each place is a Linux network namespace with public addresses, a resolver and sites, and a
 * router delays the packets between places. The programs need no proxy or resolver setting, so real sockets, DNS, ICMP, IPv6 and
 * source addresses are tested. It needs root on Linux, `ip`, `openssl` and python3; `smallInternetNeeds` says what is missing.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Database } from "#db/server-database";
import { builtProgram, nearcrawl, type Outcome } from "../built-command.ts";
import { testDatabase } from "../database.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { until } from "../until.ts";

/** Registries' files give each country blocks of 256 addresses in these first octets. */
const countries = {
  nl: { registry: "ripencc", country: "NL", firstOctet: 193, v6: "2001:67c" },
  jp: { registry: "apnic", country: "JP", firstOctet: 133, v6: "2001:df0" },
  br: { registry: "lacnic", country: "BR", firstOctet: 177, v6: "2801:80" },
  za: { registry: "afrinic", country: "ZA", firstOctet: 196, v6: "2001:43f8" },
} as const;
export type Place = keyof typeof countries;

/** One-way delays in ms, as measured between Amsterdam, Tokyo, São Paulo and Johannesburg. */
const oneWayMs = { "jp nl": 115, "br nl": 95, "nl za": 80, "br jp": 140, "jp za": 170, "br za": 160 };

export interface InternetOptions {
  readonly places: readonly Place[];
  readonly sitesPerPlace: number;
  /** Further hosts with an IPv6 address only, beside h0.nl.example, h1.nl.example, … */
  readonly hosts?: Readonly<Record<string, { readonly place: Place; readonly v6: string }>>;
  /** Machines of these places have no IPv6. */
  readonly withoutV6?: readonly Place[];
}

export interface Running {
  readonly child: ChildProcess;
  /** Its output so far. */
  readonly text: () => string;
  /** Its exit code; null after a signal. */
  readonly ended: Promise<number | null>;
  /** Asks it to end and waits for it. */
  readonly stop: () => Promise<void>;
}

const missingParts = [
  { what: "Linux and root", isHere: () => process.platform === "linux" && process.getuid?.() === 0 },
  { what: "/dev/net/tun", isHere: () => existsSync("/dev/net/tun") },
  { what: "ip (iproute2)", isHere: () => runs("ip", ["netns", "list"]) },
  { what: "openssl", isHere: () => runs("openssl", ["version"]) },
  { what: "python3", isHere: () => runs("python3", ["-c", "import ctypes, fcntl"]) },
  { what: "network namespaces", isHere: () => runs("unshare", ["--net", "true"]) },
];

function runs(command: string, args: readonly string[]): boolean {
  try {
    execFileSync(command, [...args], { stdio: "ignore", timeout: 10_000 });
    return true;
  } catch {
    return false;
  }
}

/** Returns, and prints, what this machine lacks; null when nothing is missing. */
export function smallInternetNeeds(): string | null {
  const missing = missingParts.find(({ isHere }) => !isHere())?.what ?? null;
  if (missing !== null) process.stdout.write(`skipped: tests on network namespaces: no ${missing}\n`);
  return missing;
}

const namespacePrefix = "nearcrawl-";
const namespaceOf = (place: Place) => `${namespacePrefix}${process.pid}-${place}`;

/** Removes the namespaces of killed runs. */
function removeAbandoned(): void {
  if (!existsSync("/run/netns")) return;
  for (const name of readdirSync("/run/netns")) {
    const pid = new RegExp(`^${namespacePrefix}(\\d+)-`).exec(name)?.[1];
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) removeNamespace(name);
  }
}

function removeNamespace(name: string): void {
  runs("ip", ["netns", "del", name]);
  rmSync(join("/etc/netns", name), { recursive: true, force: true });
}

function command(executable: string, args: readonly string[], options: Parameters<typeof spawn>[2]): Running {
  const child = spawn(executable, [...args], { ...options, stdio: ["pipe", "pipe", "pipe"] });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (piece) => (text += String(piece)));
  const ended = once(child, "exit").then(([code]) => code as number | null);
  const stop = async () => {
    child.kill("SIGTERM");
    const patience = setTimeout(() => child.kill("SIGKILL"), 20_000);
    await ended;
    clearTimeout(patience);
  };
  return { child, text: () => text, ended, stop };
}

export type SmallInternet = Awaited<ReturnType<typeof smallInternet>>;

export async function smallInternet(options: InternetOptions) {
  removeAbandoned();
  const { places, sitesPerPlace, hosts = {}, withoutV6 = [] } = options;
  const folder = temporaryFolder("nearcrawl-small-internet-");
  const running: Running[] = [];
  const v4Of = (place: Place, block: number) => `${countries[place].firstOctet}.${20 + block}.7.80`;
  const v6Of = (place: Place, block: number) => `${countries[place].v6}:${block + 1}::80`;
  /** Block 0 of a place holds its machines, such as a crawler's. */
  const machine = (place: Place) => ({ v4: v4Of(place, 0), v6: v6Of(place, 0) });

  const records: Record<string, { A?: string; AAAA?: string }> = {
    "coordinator.small-internet.net": { A: machine(places[0]!).v4 },
  };
  const placeOf: Record<string, Place> = {};
  for (const place of places) {
    const { v4, v6 } = machine(place);
    placeOf[v4] = place;
    if (!withoutV6.includes(place)) placeOf[v6] = place;
    for (let site = 0; site < sitesPerPlace; site++) {
      const address = v4Of(place, site + 1);
      records[`h${site}.${place}.example`] = { A: address };
      placeOf[address] = place;
    }
  }
  for (const [host, { place, v6 }] of Object.entries(hosts)) {
    records[host] = { AAAA: v6 };
    placeOf[v6] = place;
  }

  const router = command("python3", [join(import.meta.dirname, "router.py")], {});
  const tell = async (line: object) => {
    const heard = router.text().length;
    router.child.stdin!.write(`${JSON.stringify(line)}\n`);
    await until(() => router.text().length > heard || router.child.exitCode !== null, 10_000);
    if (router.child.exitCode !== null) throw new Error(`the router has ended: ${router.text()}`);
  };

  function run(place: Place, args: readonly string[], env: NodeJS.ProcessEnv = {}): Running {
    const started = command("ip", ["netns", "exec", namespaceOf(place), ...args], {
      env: { ...process.env, ...env },
    });
    running.push(started);
    return started;
  }

  async function buildPlace(place: Place): Promise<void> {
    const namespace = namespaceOf(place);
    const ip = (...args: string[]) => execFileSync("ip", args, { stdio: ["ignore", "ignore", "inherit"] });
    const inside = (...args: string[]) => ip("-n", namespace, ...args);
    ip("netns", "add", namespace);
    mkdirSync(join("/etc/netns", namespace), { recursive: true });
    writeFileSync(join("/etc/netns", namespace, "resolv.conf"), "nameserver 127.0.0.53\n");
    inside("link", "set", "lo", "up");
    await tell({ namespaces: { [place]: namespace } });
    const hasV6 = !withoutV6.includes(place);
    const { v4, v6 } = machine(place);
    inside("addr", "add", `${v4}/32`, "dev", "tun0");
    if (hasV6) inside("-6", "addr", "add", `${v6}/128`, "dev", "tun0", "nodad");
    inside("link", "set", "tun0", "up");
    inside("route", "add", "default", "dev", "tun0", "src", v4);
    if (hasV6) inside("-6", "route", "add", "default", "dev", "tun0", "src", v6);
    const here = Object.entries(placeOf).flatMap(([address, at]) => (at === place ? [address] : []));
    for (const address of here) if (address !== v4 && address !== v6) addAddress(inside, address);
  }

  await tell({ oneWayMs, places: placeOf });
  for (const place of places) await buildPlace(place);
  const dnsPacket = createRequire(import.meta.url).resolve("dns-packet");
  for (const place of places) {
    const script = join(import.meta.dirname, "place.mjs");
    const answering = run(place, [process.execPath, script, JSON.stringify({ records }), dnsPacket]);
    await until(() => answering.text().includes("ready"), 20_000);
  }

  return {
    folder,
    run,
    machine,
    hosts: (place: Place) => Array.from({ length: sitesPerPlace }, (_, site) => `h${site}.${place}.example`),
    addressOf: (host: string) => records[host]!.A ?? records[host]!.AAAA!,
    /** The registries' statistics files, in which every site has a block and a holder of its own. */
    registryFiles: () => places.map((place) => writeRegistryFile(folder, place, sitesPerPlace)),
    close: async () => {
      await Promise.all(running.map(({ stop }) => stop()));
      router.child.stdin!.end();
      await router.ended;
      for (const place of places) removeNamespace(namespaceOf(place));
    },
  };
}

function addAddress(inside: (...args: string[]) => void, address: string): void {
  if (address.includes(":")) inside("-6", "addr", "add", `${address}/128`, "dev", "lo", "nodad");
  else inside("addr", "add", `${address}/32`, "dev", "lo");
}

/** RIRs' "delegated-extended" format, version 2. */
function writeRegistryFile(folder: string, place: Place, sites: number): string {
  const { registry, country, firstOctet, v6 } = countries[place];
  const day = new Date().toISOString().slice(0, 10).replaceAll("-", "");
  const blocks = Array.from({ length: sites + 1 }, (_, block) => block);
  const records = [
    ...blocks.map(
      (block) => `ipv4|${firstOctet}.${20 + block}.0.0|4096|20200101|allocated|${place}-${block}`,
    ),
    ...blocks.map((block) => `ipv6|${v6}:${block + 1}::|48|20200101|allocated|${place}-${block}`),
  ].map((record) => `${registry}|${country}|${record}`);
  const counts = ["ipv4", "ipv6"].map((kind) => `${registry}|*|${kind}|*|${blocks.length}|summary`);
  const head = `2|${registry}|${day}|${records.length}|20200101|${day}|+0000`;
  const path = join(folder, `delegated-${registry}-extended-${day}`);
  writeFileSync(path, [head, ...counts, ...records, ""].join("\n"));
  return path;
}

export interface FleetOptions {
  readonly coordinatorAt: Place;
}

export type PlacedFleet = Awaited<ReturnType<typeof placedFleet>>;

/** A coordinator with TLS in one place and imported registries, which crawlers join by invitation from any place. */
export async function placedFleet(internet: SmallInternet, options: FleetOptions) {
  const { coordinatorAt } = options;
  const { folder } = internet;
  const home = join(folder, "coordinator");
  mkdirSync(home);
  const database = await testDatabase({ maxConnections: 4 });
  const main = await builtProgram("ops/cli/main");
  const env = { DATABASE_URL: database.url, NEARCRAWL_SCHEMA: database.schema, NEARCRAWL_HOME: home };
  const tls = makeCertificate(folder);
  const address = `${internet.machine(coordinatorAt).v4}:8443`;
  const config = join(home, "coordinator.json");
  const publicUrl = "https://coordinator.small-internet.net:8443";
  const [host, port] = address.split(":");
  writeFileSync(
    config,
    JSON.stringify({
      listen: { host, port: Number(port) },
      tls,
      publicUrl,
      contact: "noc@coordinator.small-internet.net",
    }),
  );

  const nearcrawlHere = async (...args: string[]): Promise<Outcome> =>
    await nearcrawl(args, { database, env });
  async function mustRun(...args: string[]): Promise<string> {
    const { code, out, err } = await nearcrawlHere(...args);
    if (code !== 0) throw new Error(`nearcrawl ${args.join(" ")}: exit code ${code}\n${out}${err}`);
    return out;
  }
  await mustRun("rir", "apply", ...internet.registryFiles());

  async function startCoordinator(): Promise<void> {
    const coordinator = internet.run(
      coordinatorAt,
      [process.execPath, main, "coordinator", "--config", config, "--home", home],
      env,
    );
    await until(() => coordinator.text().includes(`coordinator at `) || hasEnded(coordinator), 60_000);
    if (hasEnded(coordinator)) throw new Error(coordinator.text());
  }

  const homeOf = (name: string) => join(folder, `crawler-${name}`);

  async function joinFrom(name: string, place: Place): Promise<void> {
    const invitation = JSON.parse(await mustRun("fleet", "invite", "--name", name, "--json")) as {
      readonly token: string;
    };
    mkdirSync(homeOf(name), { mode: 0o700 });
    const joining = [
      process.execPath,
      main,
      "crawler",
      "join",
      invitation.token,
      "--yes",
      "--home",
      homeOf(name),
    ];
    const joined = internet.run(place, joining);
    if ((await joined.ended) !== 0) throw new Error(joined.text());
    internet.run(place, [process.execPath, main, "crawler", "run", "--home", homeOf(name)]);
    const online = "select from crawler where name = $1 and state = 'online'";
    await until(async () => (await database.pool.query(online, [name])).rowCount === 1, 60_000);
  }

  await startCoordinator();
  return {
    /** Runs a command; throws unless its exit code is 0. */
    run: mustRun,
    /** Invites a crawler, joins from this place and starts it there; it is online when this resolves. */
    join: joinFrom,
    rows: async <Row extends object>(text: string, values: readonly unknown[] = []) =>
      (await database.pool.query<Row>(text, [...values])).rows,
    /** Returns the crawler of the host's effective delegation, or null. */
    ownerOf: async (host: string) => await ownerOf(database, internet.addressOf(host)),
    close: async () => await database.close(),
  };
}

const hasEnded = ({ child }: Running) => child.exitCode !== null || child.signalCode !== null;

function makeCertificate(folder: string) {
  const [certificateFile, keyFile] = ["certificate.pem", "key.pem"].map((name) => join(folder, name)) as [
    string,
    string,
  ];
  const names = [
    "-subj",
    "/CN=coordinator.small-internet.net",
    "-addext",
    "subjectAltName=DNS:coordinator.small-internet.net",
  ];
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", keyFile];
  execFileSync("openssl", ["req", "-x509", "-days", "30", ...names, ...key, "-out", certificateFile], {
    stdio: "ignore",
  });
  return { certificateFile, keyFile };
}

async function ownerOf({ pool }: Database, address: string): Promise<string | null> {
  const { rows } = await pool.query<{ name: string }>(
    `select c.name
     from subnet s
     join delegation d using (subnet_id)
     join crawler c using (crawler_id)
     where s.removed_in is null and $1::inet between s.first_address and s.last_address
     order by s.first_address desc, s.last_address
     limit 1`,
    [address],
  );
  return rows[0]?.name ?? null;
}
