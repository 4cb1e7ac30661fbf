/** One open connection to one origin, and the HTTP version that it speaks. */
import type { Exchange } from "./exchange.ts";

export interface SiteRequest {
  /** Path and query, as in the URL. */
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Left out: GET. */
  readonly method?: "HEAD";
}

/** Carries one exchange after the other. */
export interface Transport {
  readonly http: "1.1" | "2";
  /** It may carry another exchange. */
  readonly isOpen: boolean;
  /** Sends the request and tells the exchange what becomes of it; never throws. */
  send(request: SiteRequest, exchange: Exchange): void;
  close(): void;
}
