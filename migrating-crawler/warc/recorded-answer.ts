/** An answer that is recorded when it has been read or dropped. One that breaks off leaves no record. */
import type {
  AnswerHead,
  AnswerHeaders,
  BodyReading,
  SiteAnswer,
  TakeBytes,
  WireBody,
} from "../fetch/exchange.ts";

export class RecordedAnswer implements SiteAnswer {
  readonly #answer: SiteAnswer;
  readonly #record: (body: WireBody | null) => Promise<void>;

  /** `record` is awaited, so that the disk holds the crawl back and not the memory; null: no body was read. */
  constructor(answer: SiteAnswer, record: (body: WireBody | null) => Promise<void>) {
    this.#answer = answer;
    this.#record = record;
  }

  get status(): number {
    return this.#answer.status;
  }

  get headers(): AnswerHeaders {
    return this.#answer.headers;
  }

  get head(): AnswerHead {
    return this.#answer.head;
  }

  get firstByteMs(): number {
    return this.#answer.firstByteMs;
  }

  async read(reading: BodyReading): Promise<WireBody> {
    const body = await this.#answer.read(reading);
    await this.#record(body);
    return body;
  }

  async drop(take: TakeBytes, mostBytes?: number): Promise<boolean> {
    const isEnded = await this.#answer.drop(take, mostBytes);
    await this.#record(null);
    return isEnded;
  }
}
