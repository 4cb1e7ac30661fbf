/** Extracts pages one after another in a thread of extraction-pool.ts. */
import { type MessagePort, parentPort } from "node:worker_threads";
import { type Extracted, extractPage, type FetchedBody } from "./extract-page.ts";

/** The message transfers the page's bytes. `go` answers `may-i-go-on`. */
export type ToExtractionThread =
  | {
      readonly type: "extract";
      readonly body: Omit<FetchedBody, "quiet" | "bytes">;
      readonly bytes: Uint8Array;
    }
  | { readonly type: "go" };

/** Answers come in the order of the pages. `may-i-go-on` is sent during pauses in a long computation. */
export type FromExtractionThread =
  | { readonly type: "ready" }
  | { readonly type: "extracted"; readonly extracted: Extracted }
  | { readonly type: "failed"; readonly reason: string }
  | { readonly type: "may-i-go-on" };

serve(parentPort!);

function serve(port: MessagePort): void {
  const say = (message: FromExtractionThread) => port.postMessage(message);
  let goOn = () => {};
  const quiet = () =>
    new Promise<void>((resolve) => {
      goOn = resolve;
      say({ type: "may-i-go-on" });
    });
  let last = Promise.resolve();
  port.on("message", (message: ToExtractionThread) => {
    if (message.type === "go") goOn();
    else last = last.then(() => extract(message, quiet)).then(say);
  });
  say({ type: "ready" });
}

async function extract(
  { body, bytes }: Extract<ToExtractionThread, { type: "extract" }>,
  quiet: () => Promise<void>,
): Promise<FromExtractionThread> {
  try {
    const extracted = await extractPage({
      ...body,
      bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
      quiet: firstFree(quiet),
    });
    return { type: "extracted", extracted };
  } catch (error) {
    return { type: "failed", reason: error instanceof Error ? error.message : String(error) };
  }
}

/** The pool already waited before it passed on the page, so the first wait is skipped. */
function firstFree(quiet: () => Promise<void>): () => Promise<void> {
  let asked = false;
  return async () => {
    if (asked) return await quiet();
    asked = true;
  };
}
