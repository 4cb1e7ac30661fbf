/**
 * Reads a part of RPSL by pieces, which are cut behind empty lines: each is read by a thread that has nothing else to
 * do, else here. What comes out is the same as if one reader had read it from its beginning to its end: lines are
 * counted within a piece, and added up when all pieces are read. The end of the file, where it shows whether the
 * file was cut off, is read here when all before is known.
 */
import { type BeforePiece, RpslReader } from "../formats/rpsl.ts";
import { PieceCutter, type PieceHandler } from "../formats/rpsl-pieces.ts";
import { FileReportBuilder, maxReasonsOfPiece, type PieceReport } from "./file-report.ts";
import { type RecordReceiver, sinkOf } from "./record-sink.ts";

export interface Piece {
  readonly file: string;
  /** Pieces are numbered in the order in which they count as read. */
  readonly number: number;
  readonly bytes: Uint8Array;
}

export interface PieceAnswer extends BeforePiece {
  readonly report: PieceReport;
}

/** Takes the pieces' records, each piece's for itself. */
export interface PieceReceiver extends RecordReceiver {
  /** What is added from now on is of this piece. */
  begin(piece: number): void;
}

export interface PieceReading {
  readonly receiver: PieceReceiver;
  readonly firstNumber: number;
  readonly pieceBytes: number;
  /** Gives the piece to another thread; null when none is free. */
  hand(piece: Piece): Promise<PieceAnswer> | null;
  /** Told of records read. */
  onRead(records: number): void;
}

/** Reads a whole piece. */
export function readPiece({ file, number, bytes }: Piece, receiver: PieceReceiver): PieceAnswer {
  const open = new OpenPiece(file, number, receiver);
  open.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  return open.end();
}

/** A piece that is read in this thread. */
class OpenPiece {
  readonly #report: FileReportBuilder;
  readonly #reader: RpslReader;

  constructor(file: string, number: number, receiver: PieceReceiver) {
    receiver.begin(number);
    this.#report = new FileReportBuilder(file, "rpsl", maxReasonsOfPiece);
    this.#reader = new RpslReader(file, sinkOf(file, this.#report, receiver));
  }

  push(chunk: Buffer): void {
    this.#reader.push(chunk);
  }

  end(before?: BeforePiece): PieceAnswer {
    this.#reader.end(before);
    const { lines, sourcesSeen } = this.#reader;
    return { report: this.#report.piece(), lines, sourcesSeen };
  }
}

export class PiecesOfPart implements PieceHandler {
  readonly #file: string;
  readonly #reading: PieceReading;
  readonly #cutter: PieceCutter;
  readonly #answers: (PieceAnswer | Promise<PieceAnswer>)[] = [];
  /** The piece that comes in stretches. */
  #open: OpenPiece | null = null;

  constructor(file: string, reading: PieceReading) {
    this.#file = file;
    this.#reading = reading;
    this.#cutter = new PieceCutter(reading.pieceBytes, this);
  }

  /** How many pieces there were so far. */
  get count(): number {
    return this.#answers.length;
  }

  push(chunk: Buffer): void {
    this.#cutter.push(chunk);
  }

  /** Adds everything to the report. Throws SourceFileError when the file is visibly cut off. */
  async end(report: FileReportBuilder): Promise<void> {
    const before = { lines: 0, sourcesSeen: 0 };
    for (const answer of this.#answers) {
      const { report: piece, lines, sourcesSeen } = await answer;
      report.addPiece(piece, before.lines);
      before.lines += lines;
      before.sourcesSeen += sourcesSeen;
    }
    const last = this.#open ?? this.#begin();
    last.push(this.#cutter.rest);
    const answer = last.end(before);
    this.#reading.onRead(recordsIn(answer));
    report.addPiece(answer.report, before.lines);
  }

  piece(bytes: Buffer): void {
    const number = this.#nextNumber();
    const piece = { file: this.#file, number, bytes };
    const handed = this.#reading.hand(piece);
    if (handed === null) this.#add(readPiece(piece, this.#reading.receiver));
    else {
      const answer = handed.then((read) => this.#told(read));
      // Awaited at the end; until then a failure is nobody's.
      answer.catch(() => {});
      this.#answers.push(answer);
    }
  }

  stretch(bytes: Buffer): void {
    this.#open ??= this.#begin();
    this.#open.push(bytes);
  }

  stretchesEnd(): void {
    if (this.#open !== null) this.#add(this.#open.end());
    this.#open = null;
  }

  #add(answer: PieceAnswer): void {
    this.#answers.push(this.#told(answer));
  }

  #told(answer: PieceAnswer): PieceAnswer {
    this.#reading.onRead(recordsIn(answer));
    return answer;
  }

  #begin(): OpenPiece {
    return new OpenPiece(this.#file, this.#nextNumber(), this.#reading.receiver);
  }

  #nextNumber(): number {
    return this.#reading.firstNumber + this.#answers.length;
  }
}

function recordsIn({ report }: PieceAnswer): number {
  return report.ignored.reduce((sum, [, count]) => sum + count, report.kept + report.malformed);
}
