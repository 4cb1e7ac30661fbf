/** The crawler's end of the wire without rules: sends whatever a test wants and returns the answers. */
import { type ClientOptions, WebSocket } from "ws";
import { decodeCoordinatorMessage, maxMessageBytes } from "#protocol/codec";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import { briefly, MessageDeflater, NodeInflater } from "#protocol/deflate";
import { challengeHeader, tlsBindingOf } from "#protocol/identity";
import type { CrawlerHello, CrawlerMessage } from "#protocol/messages";
import { FrameWriter, joinFrame } from "#protocol/packed/message-frames";
import { helloOf } from "./gateway-on-loopback.ts";

type OfType<Type extends CoordinatorMessage["type"]> = Extract<CoordinatorMessage, { type: Type }>;

export class RawCrawler {
  readonly socket: WebSocket;
  readonly received: CoordinatorMessage[] = [];
  /** The challenge to sign, or null. */
  challenge: string | null = null;
  /** Of its TLS connection. */
  binding: string | null = null;
  readonly closed: Promise<{ code: number; words: string }>;
  readonly deflater = new MessageDeflater(briefly);
  readonly frames = new FrameWriter();
  readonly #inflater = new NodeInflater();
  #waiting: (() => void)[] = [];
  #isClosed = false;
  #isWelcomed = false;

  constructor(url: string, options: ClientOptions = {}) {
    this.socket = new WebSocket(url, { perMessageDeflate: false, ...options });
    this.socket.on("error", () => {});
    this.socket.once("upgrade", ({ headers, socket }) => {
      this.binding = tlsBindingOf(socket);
      const challenge = headers[challengeHeader];
      this.challenge = typeof challenge === "string" ? challenge : null;
    });
    this.socket.on("message", (data) => this.#receive(data as Buffer));
    this.closed = new Promise((resolve) => {
      this.socket.once("close", (code, words) => {
        this.#isClosed = true;
        this.#wake();
        resolve({ code, words: words.toString() });
      });
    });
  }

  static async connect(url: string, options: ClientOptions = {}): Promise<RawCrawler> {
    const crawler = new RawCrawler(url, options);
    await new Promise((resolve, reject) => {
      crawler.socket.once("open", resolve);
      crawler.socket.once("error", reject);
    });
    return crawler;
  }

  static async arrive(url: string, name: string, changes: Partial<CrawlerHello> = {}): Promise<RawCrawler> {
    const crawler = await RawCrawler.connect(url);
    await crawler.send(helloOf(name, changes));
    await crawler.next("coordinator:welcome");
    return crawler;
  }

  /** As JSON before the welcome, packed afterwards. */
  async send(message: CrawlerMessage): Promise<void> {
    if (!this.#isWelcomed) return await this.sendText(JSON.stringify(message));
    const { numbers, text } = this.frames.message(message);
    await this.sendText(text, numbers);
  }

  /** Messages sent while the connection closes are lost. */
  async sendText(text: string, numbers: Buffer | null = null): Promise<void> {
    const bytes = await this.deflater.deflate(text);
    this.sendBytes(numbers === null ? bytes : joinFrame(numbers, bytes));
  }

  sendBytes(bytes: Buffer): void {
    this.socket.send(bytes, { binary: true });
  }

  /** The next unread message of this type; rejects when the connection closes without one. */
  async next<Type extends CoordinatorMessage["type"]>(type: Type): Promise<OfType<Type>> {
    for (;;) {
      const at = this.received.findIndex((message) => message.type === type);
      if (at >= 0) return this.received.splice(at, 1)[0] as OfType<Type>;
      if (this.#isClosed) throw new Error(`the connection closed without ${type}`);
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  disconnect(): void {
    this.socket.terminate();
  }

  #receive(data: Buffer): void {
    const message = decodeCoordinatorMessage(this.#inflater.inflate(data, maxMessageBytes));
    this.#isWelcomed ||= message.type === "coordinator:welcome";
    this.received.push(message);
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}
