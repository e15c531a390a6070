// Why a hook got no answer matters: a target that cannot be reached says nothing about the message; one that takes the
// request and goes silent may do so because of it.

/** The target cannot have seen the request: no connection, no address, or an address that may not be called. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}
