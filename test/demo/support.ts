import type { Claim } from '#client/index.ts';

export const claimOf = (number: number): Claim => ({
  claim_id: `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`,
  resource_id: `slot ${number}`,
  pool_id: 'p',
  user_id: `user ${number}`,
  request_id: null,
  status: 'queued',
  claimed_at: '2026-02-24T10:00:00Z',
  hold_until: null,
});
