// A body put together from its chunks. The sender chooses how many there are: appending each to a copy of what came before
// would make a megabyte of one-byte chunks half a terabyte of copying. Room that doubles makes it two copies of each byte.

const NOTHING = new Uint8Array(0);
/** Tiny chunks do not start with tiny steps. */
const MIN_GROWN_BYTES = 1024;

export class BodyBuffer {
  #maxBytes: number;
  #room: Uint8Array = NOTHING;
  #length = 0;
  #grown = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** How often room was made. */
  get grown(): number {
    return this.#grown;
  }

  /** It may be no larger than this from now on; false where it is already. */
  limitTo(maxBytes: number): boolean {
    this.#maxBytes = Math.min(maxBytes, this.#maxBytes);
    return this.#length <= maxBytes;
  }

  /** False where the body would be larger than it may be; then nothing of the chunk is kept. */
  add(chunk: Uint8Array): boolean {
    const length = this.#length + chunk.length;
    if (length > this.#maxBytes) return false;
    // Nearly every body is one chunk: keep it without a copy. It has no room to spare, so a second chunk never writes into it.
    if (this.#length === 0) this.#room = chunk;
    else {
      if (length > this.#room.length) this.#grow(length);
      this.#room.set(chunk, this.#length);
    }
    this.#length = length;
    return true;
  }

  bytes(): Uint8Array {
    return this.#room.subarray(0, this.#length);
  }

  #grow(needed: number): void {
    const wanted = Math.max(needed, 2 * this.#room.length, MIN_GROWN_BYTES);
    const room = new Uint8Array(Math.min(wanted, this.#maxBytes));
    room.set(this.bytes());
    this.#room = room;
    this.#grown++;
  }
}
