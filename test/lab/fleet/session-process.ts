/**
 * A process with a part of the fleet. Told over its channel what to do; tells several times a second how it stands, and
 * ends with the process that started it.
 */
import net from "node:net";
import { FleetSession, type SessionSettings } from "./session.ts";
import { Tally, type TallySheet } from "./tally.ts";

export type SessionOrder =
  | { readonly type: "open"; readonly from: number; readonly to: number; readonly webUrl: string }
  /** Over so many ms; 0: all at once. */
  | { readonly type: "start"; readonly overMs: number }
  | { readonly type: "set"; readonly settings: Partial<SessionSettings> }
  /** All connections break, at this moment. */
  | { readonly type: "drop" }
  | { readonly type: "end" };

export interface SessionReport {
  readonly type: "report";
  readonly sessions: number;
  readonly sheet: TallySheet;
}

const reportMs = 200;
/** The coordinator takes 500 connections of one address. */
const crawlersPerAddress = 400;
const tally = new Tally();
const settings = { concurrentHosts: 32, fetchMs: 100 };
let sessions: FleetSession[] = [];
const sockets = new Set<net.Socket>();

process.on("message", (order: SessionOrder) => void obey(order));
// Whoever started this is gone: nobody else would end it.
process.once("disconnect", () => process.exit());
setInterval(report, reportMs);

async function obey(order: SessionOrder): Promise<void> {
  switch (order.type) {
    case "open":
      spreadAddresses(order.from, order.to);
      sessions = Array.from(
        { length: order.to - order.from },
        (_, index) => new FleetSession(order.from + index, order.webUrl, tally, settings),
      );
      return;
    case "start":
      for (const [index, session] of sessions.entries())
        setTimeout(() => session.start(), (order.overMs * index) / sessions.length);
      return;
    case "set":
      Object.assign(settings, order.settings);
      return;
    case "drop":
      for (const socket of sockets) socket.destroy();
      return;
    case "end":
      await Promise.all(sessions.map((session) => session.stop()));
      report();
      process.disconnect();
      return;
  }
}

function report(): void {
  const said: SessionReport = { type: "report", sessions: sessions.length, sheet: tally.take() };
  process.send?.(said);
}

/** The links say only where to; the system may be told from where. */
function spreadAddresses(from: number, to: number): void {
  const connect = net.connect as (options: object) => net.Socket;
  // Twice as far apart as one process needs: no two use the same.
  const firstAddress = 2 * Math.floor(from / crawlersPerAddress);
  const addresses = Math.ceil((to - from) / crawlersPerAddress) + 1;
  let connections = 0;
  Object.assign(net, {
    connect: (given: object) => {
      connections += 1;
      const localAddress = `127.0.1.${1 + firstAddress + (connections % addresses)}`;
      const socket = connect("noDelay" in given ? { ...given, localAddress } : given);
      sockets.add(socket);
      return socket.once("close", () => sockets.delete(socket));
    },
  });
}
