// The rules of the tables that operators write to, as sentences: an operator who breaks one reads what to do instead, and
// never sees the name of a constraint. Where possible, a rule is checked before the database is asked.

import { HttpError } from './errors.ts';

export const SENTENCES: Readonly<Record<string, string>> = {
  name_is_a_path_segment: 'The name is 1 to 63 lower-case letters, digits, _ and -, and begins with no sign.',
  provider_is_a_word: 'The provider is 1 to 63 lower-case letters, digits, _ and -, and begins with no sign.',
  tenant_is_of_the_provider: 'An endpoint shares a tenant of its own provider.',
  livemode_is_known: 'livemode is live, test or both.',
  accounts_are_ids: 'accounts are up to 100 ids of letters, digits, _, / and -.',
  mode_is_known: 'The mode is inline or queued.',
  on_outage_is_known: 'on_outage is refuse or accept.',
  one_to_five_secrets: 'An endpoint has one to five secrets.',
  secrets_are_names: 'A secret is given by its name, such as STRIPE_WEBHOOK_SECRET, never by its value.',
  verify_token_is_a_name:
    'The verify token is given by its name, such as WHATSAPP_VERIFY_TOKEN, never by its value.',
  api_key_is_a_name: 'The API key is given by its name, such as STRIPE_API_KEY, never by its value.',
  public_url_is_http: 'The public URL begins with http:// or https:// and has at most 2000 characters.',
  only_hmac_has_a_scheme: 'The provider hmac needs a scheme, and no other provider takes one.',
  scheme_is_an_object: 'The scheme is a JSON object.',
  max_attempts_in_range: 'max_attempts is 1 to 100.',
  backoff_cap_in_range: 'backoff_cap_sec is 1 to 86400.',
  lease_in_range: 'lease_sec is 1 to 3600.',
  max_body_in_range: 'max_body_bytes is 1 to 10485760.',
  keep_payload_days_in_range: 'keep_payload_days is 1 to 36500.',
  site_id_fits_a_header: 'The id of a site is 1 to 200 letters, digits, _, :, @ and -.',
  at_most_five_secrets: 'A site has at most five secrets.',
  signing_needs_a_secret: 'A site that must sign needs the name of a secret.',
  some_kind_is_known: 'A site with a list of kinds has at least one.',
};

// PostgREST passes on the message and not the field; our own functions raise the message again.
const BROKEN = /violates check constraint "([^"]+)"/;

/** Lets work pass on; a broken rule becomes a refusal of the input that says the rule. */
export async function withRules<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    const rule = error instanceof Error ? BROKEN.exec(error.message)?.[1] : undefined;
    if (rule === undefined) throw error;
    const sentence = SENTENCES[rule] ?? 'A value is not one that the table takes.';
    throw new HttpError('invalid_input', sentence, error);
  }
}
