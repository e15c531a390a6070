// Ids that people and their programs choose: users and requests. Two that look alike must be one and the same, so an id with
// characters that cannot be seen, or that another form of writing would change, is refused. No id is changed on the way.
// intake.check_ids is the same rule in SQL, and a test compares the two for every character there is.

export const MAX_ID_CHARS = 200;

/** Nearly every id: visible ASCII, spaces inside. */
const PLAIN = /^[!-~](?:[ -~]{0,198}[!-~])?$/;
/** Control, format and default ignorable characters, line separators, and halves of a character: from and to. */
const UNSEEN: readonly (readonly [number, number])[] = [
  ...([
    [0x00, 0x1f],
    [0x7f, 0x9f],
    [0xad, 0xad],
    [0x34f, 0x34f],
    [0x600, 0x605],
    [0x61c, 0x61c],
    [0x6dd, 0x6dd],
  ] as const),
  ...([
    [0x70f, 0x70f],
    [0x890, 0x891],
    [0x8e2, 0x8e2],
    [0x115f, 0x1160],
    [0x17b4, 0x17b5],
    [0x180b, 0x180f],
  ] as const),
  ...([
    [0x200b, 0x200f],
    [0x2028, 0x202e],
    [0x2060, 0x206f],
    [0x3164, 0x3164],
    [0xd800, 0xdfff],
  ] as const),
  ...([
    [0xfe00, 0xfe0f],
    [0xfeff, 0xfeff],
    [0xffa0, 0xffa0],
    [0xfff0, 0xfffb],
    [0x110bd, 0x110bd],
  ] as const),
  ...([
    [0x110cd, 0x110cd],
    [0x13430, 0x1343f],
    [0x1bca0, 0x1bca3],
    [0x1d173, 0x1d17a],
    [0xe0000, 0xe0fff],
  ] as const),
];
const SPACE_AT_AN_END = /^[ \u1680]|[ \u1680]$/;

/** What is wrong with the id, or undefined where it is fit. */
export function wrongIn(id: string): string | undefined {
  if (PLAIN.test(id)) return undefined;
  if (id === '' || id.length > 2 * MAX_ID_CHARS || [...id].length > MAX_ID_CHARS)
    return `must have 1 to ${MAX_ID_CHARS} characters`;
  if ([...id].some(isUnseen)) return 'holds a control or zero-width character';
  if (SPACE_AT_AN_END.test(id)) return 'has a space at an end';
  if (id.normalize('NFKC') !== id) return 'is not in the Unicode form NFKC';
  return undefined;
}

function isUnseen(character: string): boolean {
  const code = character.codePointAt(0) ?? 0;
  return UNSEEN.some(([from, to]) => code >= from && code <= to);
}
