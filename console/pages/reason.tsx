// Why a claim became a dead letter.

/** What the bridge writes in front of the last error when the attempts are used up. */
const USED_UP = /^max_retries(: )?/;

export function Reason({ reason }: { reason: string }) {
  const error = reason.replace(USED_UP, '');
  return (
    <div class="note">
      <strong class="verdict">{error || 'no attempt came to an end'}</strong>
      {USED_UP.test(reason) && <span class="muted"> all attempts are used up</span>}
    </div>
  );
}
