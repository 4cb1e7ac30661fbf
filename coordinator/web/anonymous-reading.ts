/**
 * Who may read without signing in: by default whoever asks this machine directly, and only while the coordinator is for this
 * machine alone. A reverse proxy makes strangers look local, since its own connection comes from loopback and it may write
 * Host itself (nginx does by default), so each mark of one ends anonymous reading for that request.
 *
 * What cannot be told from a person at this machine: a forwarder of bytes (ssh -R, socat) that runs under a person's account
 * or the coordinator's own, whose client may write any Host.
 */
import { readFile } from "node:fs/promises";
import type { Socket } from "node:net";
import type { FastifyRequest } from "fastify";
import { isLoopbackHost } from "#protocol/invitation";
import { isFromElsewhere, isThisMachine, proxyMarkOf } from "./limits.ts";

/** True: whoever reaches the pages; `on-this-machine`: whoever asks this machine directly, by its own name. */
export type AnonymousReading = boolean | "on-this-machine";

/** What ends anonymous reading `on-this-machine` for this request, as the start of a sentence; null: nothing does. */
export async function markOfOthers(request: FastifyRequest): Promise<string | null> {
  const { host = "" } = request.headers;
  if (!isLoopbackHost(host.toLowerCase().replace(/:\d*$/, ""))) return "It does not ask for localhost";
  if (!isThisMachine(request.socket.remoteAddress ?? "")) return "It does not come from this machine";
  const proxy = proxyMarkOf(request);
  if (proxy !== null) return `It came through a proxy (${proxy})`;
  if (isFromElsewhere(request)) return "Another site's page sent the browser here";
  const uid = await uidOfPeer(request.socket);
  return uid === null || isPersonal(uid)
    ? null
    : `It came from a service's account (uid ${uid}), as a proxy's do`;
}

/**
 * Package managers give services accounts below 1000 (systemd's SYS_UID_MAX), and `nobody` is 65534; people and containers' users
 * come above, and root may read everything anyway.
 */
const isPersonal = (uid: number): boolean =>
  uid === 0 || uid === process.getuid?.() || (uid >= 1000 && uid !== 65_534);

const uidsOfPeers = new WeakMap<Socket, Promise<number | null>>();

/** The account whose process holds the other end of a loopback connection; null: unknown (no Linux, or it is closed by now). */
function uidOfPeer(socket: Socket): Promise<number | null> {
  const known = uidsOfPeers.get(socket) ?? readUidOfPeer(socket);
  uidsOfPeers.set(socket, known);
  return known;
}

/**
 * From proc(5), /proc/net/tcp: local and remote address (hexadecimal, port last), …, uid in the eighth column. Loopback
 * addresses are not compared: of several connections with the same ports, one of a service counts.
 */
async function readUidOfPeer({ remotePort, localPort }: Socket): Promise<number | null> {
  if (remotePort === undefined || localPort === undefined) return null;
  const hex = (port: number) => port.toString(16).toUpperCase().padStart(4, "0");
  const ends = new RegExp(
    `^ *\\d+: \\w+:${hex(remotePort)} \\w+:${hex(localPort)} (?:\\S+ +){4}(\\d+)`,
    "gm",
  );
  const tables = await Promise.all(
    ["tcp", "tcp6"].map(async (name) => await readFile(`/proc/net/${name}`, "latin1").catch(() => "")),
  );
  const uids = [...tables.join("\n").matchAll(ends)].map(([, uid]) => Number(uid));
  return uids.find((uid) => !isPersonal(uid)) ?? uids[0] ?? null;
}
