/**
 * A minimal coordinator for joins over real sockets: challenge, signed hello, ticket, key. It can be told to fail like
 * a real one.
 */
import { randomBytes } from "node:crypto";
import { createServer, type Server } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type WebSocket, WebSocketServer } from "ws";
import { decodeHello, decodePackedMessage, encodeMessage } from "#protocol/codec";
import type { CoordinatorMessage, CoordinatorRefuse } from "#protocol/coordinator-messages";
import { briefly, MessageDeflater, NodeInflater } from "#protocol/deflate";
import { challengeHeader, helloText, isSignedBy } from "#protocol/identity";
import { formatInvitation, type Invitation } from "#protocol/invitation";
import type { CrawlerHello, CrawlerMessage, Goodbye } from "#protocol/messages";
import { FrameReader, splitFrame } from "#protocol/packed/message-frames";
import { testReleaseKey } from "../../support/releases.ts";
import { onLoopback } from "./loopback.ts";

export interface SmallCoordinator {
  readonly url: string;
  readonly port: number;
  /** The signed hellos of all sessions. */
  readonly hellos: CrawlerHello[];
  readonly tickets: string[];
  readonly goodbyes: Goodbye[];
  /** How often a crawler confirmed that it kept a key. */
  keysKept: number;
  invitation(changes?: Partial<Invitation>): string;
  close(): Promise<void>;
}

export interface SmallSettings {
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer };
  readonly refuse?: CoordinatorRefuse["code"];
  /** The number of links broken right after the welcome. */
  readonly cutsAfterWelcome?: number;
  /** The first session issues no key. */
  readonly keyNeverFirst?: boolean;
  /** How far its clock is behind. */
  readonly clockBehindMs?: number;
  /** The download with which partners measure the link; absent when there is none. */
  readonly program?: Buffer;
}

export const inviteSecret = "inv_0123456789abcdefghijk";
export const keyGiven = "key-of-its-own-0123456789";

export async function startSmallCoordinator(settings: SmallSettings = {}): Promise<SmallCoordinator> {
  const answer: Parameters<typeof createServer>[1] = ({ url }, response) => {
    if (url === "/releases/dock.mjs" && settings.program !== undefined)
      return void response.end(settings.program);
    const date = new Date(Date.now() - (settings.clockBehindMs ?? 0)).toUTCString();
    response.writeHead(404, { Date: date }).end();
  };
  const server = settings.tls ? createSecureServer(settings.tls, answer) : createServer(answer);
  const { port, close } = await onLoopback(server);
  const url = `${settings.tls ? "wss" : "ws"}://127.0.0.1:${port}/crawler`;
  const world: SmallCoordinator = {
    url,
    port,
    hellos: [],
    tickets: [],
    goodbyes: [],
    keysKept: 0,
    invitation: (changes) => formatInvitation({ ...plainInvitation(url), ...changes }),
    close,
  };
  acceptSessions(server, world, settings);
  return world;
}

function plainInvitation(coordinatorUrl: string): Invitation {
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
  return {
    coordinatorUrl,
    name: "amber",
    secret: inviteSecret,
    certificatePin: null,
    releaseKeys: [testReleaseKey.publicKey],
    releaseThreshold: 1,
    expiresAt,
  };
}

function acceptSessions(server: Server, world: SmallCoordinator, settings: SmallSettings): void {
  const sockets = new WebSocketServer({ server, perMessageDeflate: false });
  let cuts = settings.cutsAfterWelcome ?? 0;
  let challenge = "";
  sockets.on("headers", (headers) => {
    challenge = randomBytes(32).toString("base64url");
    headers.push(`${challengeHeader}: ${challenge}`);
  });
  sockets.on("connection", (socket) => {
    const session = { challenge, send: sender(socket) };
    const [inflater, frames] = [new NodeInflater(), new FrameReader()];
    let welcomed = false;
    socket.on("message", (data: Buffer) => {
      if (welcomed) {
        const { numbers, deflated } = splitFrame(data);
        const text = inflater.inflate(deflated, 1_000_000);
        return hear(world, decodePackedMessage({ numbers, text }, frames), socket);
      }
      welcomed = true;
      const hello = helloIn(inflater.inflate(data, 1_000_000));
      void greet(world, { ...session, hello }, settings).then(() => {
        if (cuts-- > 0) socket.terminate();
      });
    });
  });
}

interface Greeting {
  readonly challenge: string;
  readonly hello: CrawlerHello;
  readonly send: (message: CoordinatorMessage) => Promise<void>;
}

async function greet(world: SmallCoordinator, { challenge, hello, send }: Greeting, settings: SmallSettings) {
  const { identity, name, spoolId } = hello;
  if (settings.refuse !== undefined) return await send(refusal(settings.refuse));
  if (!identity) return await send(refusal("bad-signature"));
  const { publicKey, signature, instanceId, ticket, binding } = identity;
  const text = helloText({ challenge, name, spoolId, instanceId, ticket, binding });
  if (!isSignedBy(publicKey, text, signature)) return await send(refusal("bad-signature"));
  if (ticket !== null && !world.tickets.slice(-2).includes(ticket))
    return await send(refusal("copied-folder"));
  if (hello.key !== inviteSecret && hello.key !== keyGiven) return await send(refusal("wrong-key"));
  world.hellos.push(hello);
  const next = randomBytes(32).toString("base64url");
  world.tickets.push(next);
  await send(welcome(next));
  const isFirst = world.tickets.length === 1;
  if (isFirst && (settings.keyNeverFirst || settings.cutsAfterWelcome)) return;
  if (hello.key === inviteSecret)
    await send({ type: "coordinator:key", key: keyGiven, scopes: ["crawl"], oldKeySeconds: 0 });
}

function hear(world: SmallCoordinator, message: CrawlerMessage, socket: WebSocket): void {
  if (message.type === "crawler:key-kept") world.keysKept += 1;
  if (message.type !== "crawler:goodbye") return;
  const { type: _, ...goodbye } = message;
  world.goodbyes.push(goodbye);
  socket.close();
}

function helloIn(bytes: Uint8Array): CrawlerHello {
  const decoded = decodeHello(bytes);
  if (decoded.type !== "hello") throw new Error(decoded.reason);
  return decoded.hello;
}

function sender(socket: WebSocket): Greeting["send"] {
  const deflater = new MessageDeflater(briefly);
  return async (message) => socket.send(await deflater.deflate(encodeMessage(message)), { binary: true });
}

const refusal = (code: CoordinatorRefuse["code"]): CoordinatorMessage => ({
  type: "coordinator:refuse",
  code,
  reason: `refused as ${code}`,
  retry: false,
});

const welcome = (ticket: string): CoordinatorMessage => ({
  type: "coordinator:welcome",
  protocolVersion: 7,
  crawlerId: 7,
  acknowledgedSequence: 0,
  resultCredits: 10,
  heartbeatSeconds: 60,
  userAgent: "Nearcrawl/test",
  ticket,
  time: new Date().toISOString(),
});
