/**
 * The coordinator's certificate, reloaded from disk after renewals without a restart. A renewal with another key is used only
 * in the last hour of the old certificate, because crawlers pin the key (RFC 7469) and would not return. At a start, any
 * certificate found is used.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Server as SecureServer } from "node:https";
import { ConfigError } from "#core/errors";
import { pinOf } from "#protocol/identity";

interface CertificateFiles {
  readonly certificateFile: string;
  readonly keyFile: string;
}

interface CertificateFacts {
  readonly file: string;
  readonly endsMs: number;
  /** Why the files' certificate is not used, or null. */
  readonly notTaken: string | null;
}

const lastHourMs = 3_600_000;

interface Pair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

export class OwnCertificate {
  readonly #files: CertificateFiles;
  readonly #servers: SecureServer[] = [];
  #pair: Pair;
  #notTaken: string | null = null;

  /** Throws a ConfigError that lists each unreadable file. */
  constructor(files: CertificateFiles) {
    this.#files = files;
    this.#pair = readPair(files);
  }

  get pair(): Pair {
    return this.#pair;
  }

  get pin(): string {
    return pinOf(this.#pair.cert);
  }

  facts(): CertificateFacts {
    return {
      file: this.#files.certificateFile,
      endsMs: new Date(new X509Certificate(this.#pair.cert).validTo).getTime(),
      notTaken: this.#notTaken,
    };
  }

  /** Adds a server that uses each renewal. */
  serve(server: SecureServer): void {
    this.#servers.push(server);
  }

  /** Returns true when new connections use a renewed certificate. */
  look(now: Date): boolean {
    try {
      const pair = readPair(this.#files);
      if (pair.cert.equals(this.#pair.cert) && pair.key.equals(this.#pair.key)) {
        this.#notTaken = null;
        return false;
      }
      const certificate = new X509Certificate(pair.cert);
      if (!certificate.checkPrivateKey(createPrivateKey(pair.key)))
        throw new Error(`${this.#files.keyFile} is not its key (both are written when a renewal has ended)`);
      if (pinOf(pair.cert) !== this.pin && this.facts().endsMs - now.getTime() > lastHourMs)
        throw new Error("it is for another key, and crawlers have pinned the one before");
      for (const server of this.#servers) server.setSecureContext(pair);
      this.#pair = pair;
      this.#notTaken = null;
      return true;
    } catch (error) {
      this.#notTaken = (error as Error).message;
      return false;
    }
  }
}

function readPair({ certificateFile, keyFile }: CertificateFiles): Pair {
  const faults: string[] = [];
  const read = (name: string, file: string) => {
    try {
      return readFileSync(file);
    } catch (error) {
      faults.push(`tls.${name}: ${(error as Error).message}`);
      return Buffer.alloc(0);
    }
  };
  const pair = { cert: read("certificateFile", certificateFile), key: read("keyFile", keyFile) };
  if (faults.length > 0) throw new ConfigError(faults);
  return pair;
}
