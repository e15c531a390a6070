// What Meta documents for WhatsApp: messages, statuses, calls, and news about templates, numbers and the account.

import { type Documented, json } from './request.ts';

const METADATA = { display_phone_number: '15550783881', phone_number_id: '106540352242922' };

const post = (name: string, field: string, value: unknown, ...types: string[]): Documented =>
  json(
    name,
    {
      object: 'whatsapp_business_account',
      entry: [{ id: '102290129340398', time: 1_770_000_000, changes: [{ field, value }] }],
    },
    ...types,
  );

let messages = 0;
const message = (type: string, content: unknown): Documented => {
  const one = {
    from: '16505551234',
    id: `wamid.documented.${++messages}`,
    timestamp: '1770000000',
    type,
    ...(content as object),
  };
  const contacts = [{ profile: { name: 'Ann' }, wa_id: '16505551234' }];
  return post(
    `a message: ${type}`,
    'messages',
    { messaging_product: 'whatsapp', metadata: METADATA, contacts, messages: [one] },
    `message.${type}`,
  );
};

const status = (name: string, more: unknown = {}): Documented =>
  post(
    `a message that is ${name}`,
    'messages',
    {
      messaging_product: 'whatsapp',
      metadata: METADATA,
      statuses: [
        {
          id: 'wamid.documented.out',
          status: name,
          timestamp: '1770000001',
          recipient_id: '16505551234',
          ...(more as object),
        },
      ],
    },
    `status.${name}`,
  );

/** A message to a group: each of its members has statuses of their own. */
const ofMember = (name: string, member: string): Documented =>
  status(name, {
    id: 'wamid.documented.group',
    recipient_id: 'Y2FwaV9ncm91cDox',
    recipient_type: 'group',
    recipient_participant_id: member,
  });

/** An order that is paid for in a second try: one message, two transactions. */
const ofPayment = (name: string, transaction: string): Documented =>
  status(name, {
    id: 'wamid.documented.order',
    type: 'payment',
    payment: {
      reference_id: 'order-7',
      amount: { value: 21000, offset: 100 },
      transaction: { id: transaction },
    },
  });

const media = { id: '1234567890', mime_type: 'image/jpeg', sha256: 'x' };

export const META: readonly Documented[] = [
  message('text', { text: { body: 'Hello \u00e9 \u{1f600}' } }),
  ...['image', 'video', 'audio', 'document', 'sticker'].map((type) => message(type, { [type]: media })),
  message('location', {
    location: { latitude: 37.4847483695049, longitude: -122.1473373086664, name: 'HQ' },
  }),
  message('contacts', {
    contacts: [{ name: { formatted_name: 'Bob' }, phones: [{ phone: '+1', wa_id: '1' }] }],
  }),
  message('reaction', { reaction: { message_id: 'wamid.x', emoji: '\u{1f44d}' } }),
  message('interactive', { interactive: { type: 'button_reply', button_reply: { id: 'b', title: 'Yes' } } }),
  message('button', { button: { text: 'Yes', payload: 'Yes' } }),
  message('order', {
    order: {
      catalog_id: '1',
      product_items: [{ product_retailer_id: 'a', quantity: 1, item_price: 9.99, currency: 'EUR' }],
    },
  }),
  message('system', { system: { body: 'Ann changed her number', type: 'user_changed_number', wa_id: '2' } }),
  message('unsupported', { errors: [{ code: 131051, title: 'Message type unknown' }] }),
  ...['sent', 'delivered', 'read', 'deleted'].map((name) => status(name)),
  status('failed', { errors: [{ code: 131014, title: 'Request for url failed' }] }),
  ...['16505551234', '16505551235'].flatMap((member) => [
    ofMember('delivered', member),
    ofMember('read', member),
  ]),
  ofPayment('pending', 'txn-1'),
  ofPayment('failed', 'txn-1'),
  ofPayment('pending', 'txn-2'),
  ofPayment('captured', 'txn-2'),
  status('failed', {
    id: 'wamid.documented.order',
    errors: [{ code: 131047, title: 'Re-engagement message' }],
  }),
  ...['request_welcome', 'edit', 'revoke', 'ephemeral'].map((type) => message(type, { [type]: {} })),
  post(
    'an error of the account',
    'messages',
    {
      messaging_product: 'whatsapp',
      metadata: METADATA,
      errors: [{ code: 130429, title: 'Rate limit hit' }],
    },
    'messages',
  ),
  post(
    'a call that begins',
    'calls',
    {
      messaging_product: 'whatsapp',
      metadata: METADATA,
      calls: [{ id: 'wacid.1', event: 'connect', timestamp: '1770000000' }],
    },
    'calls',
  ),
  post(
    'an echo',
    'smb_message_echoes',
    { messaging_product: 'whatsapp', metadata: METADATA, message_echoes: [{ id: 'wamid.e', type: 'text' }] },
    'smb_message_echoes',
  ),
  // As they come: the id of a template is a number above 2^53.
  ...['1', '3'].map((last) =>
    json(
      `a template of which the id ends in ${last}`,
      `{"object":"whatsapp_business_account","entry":[{"id":"102290129340398","time":1770000000,"changes":[{"field":"message_template_status_update","value":{"event":"APPROVED","message_template_id":900719925474099${last},"message_template_name":"order","message_template_language":"en-US","reason":"NONE"}}]}]}`,
      'message_template_status_update',
    ),
  ),
  post(
    'the quality of a template',
    'message_template_quality_update',
    { previous_quality_score: 'GREEN', new_quality_score: 'YELLOW', message_template_id: 806312974732579 },
    'message_template_quality_update',
  ),
  post(
    'the quality of a number',
    'phone_number_quality_update',
    { display_phone_number: '15550783881', event: 'UPGRADE', current_limit: 'TIER_10K' },
    'phone_number_quality_update',
  ),
  post(
    'the name of a number',
    'phone_number_name_update',
    { display_phone_number: '15550783881', decision: 'APPROVED' },
    'phone_number_name_update',
  ),
  post(
    'news of the account',
    'account_update',
    { phone_number: '15550783881', event: 'VERIFIED_ACCOUNT' },
    'account_update',
  ),
  post('a review of the account', 'account_review_update', { decision: 'APPROVED' }, 'account_review_update'),
  post(
    'an alert',
    'account_alerts',
    { entity_type: 'BUSINESS', entity_id: 1234567890123, alert_severity: 'WARNING' },
    'account_alerts',
  ),
  post(
    'a capability',
    'business_capability_update',
    { max_daily_conversation_per_phone: 1000, max_phone_numbers_per_business: 20 },
    'business_capability_update',
  ),
  post(
    'security',
    'security',
    { display_phone_number: '15550783881', event: 'PIN_CHANGED', requester: '1' },
    'security',
  ),
  post(
    'a flow',
    'flows',
    { event: 'FLOW_STATUS_CHANGE', message: 'x', flow_id: '6627390910605886', new_status: 'PUBLISHED' },
    'flows',
  ),
  post(
    'a preference',
    'user_preferences',
    { messaging_product: 'whatsapp', metadata: METADATA, user_preferences: [{ wa_id: '1', value: 'stop' }] },
    'user_preferences',
  ),
  post(
    'a call that rings',
    'calls',
    {
      messaging_product: 'whatsapp',
      metadata: METADATA,
      statuses: [
        { id: 'wacid.1', type: 'call', status: 'RINGING', timestamp: '1770000000', recipient_id: '1' },
      ],
    },
    'status.RINGING',
  ),
  // A message that came before it, as it stands in the history of the app.
  post(
    'media of the history',
    'history',
    {
      messaging_product: 'whatsapp',
      metadata: METADATA,
      messages: [
        {
          from: '1',
          id: 'wamid.documented.2',
          timestamp: '1770000000',
          type: 'image',
          image: { ...media, caption: 'x' },
        },
      ],
    },
    'message.image',
  ),
  ...Object.entries({
    history: {
      metadata: METADATA,
      history: [{ metadata: { phase: 0, chunk_order: 1, progress: 55 }, threads: [] }],
    },
    smb_app_state_sync: { metadata: METADATA, state_sync: [{ type: 'contact', action: 'add', contact: {} }] },
    standby: { metadata: METADATA, contacts: [] },
    messaging_handovers: { metadata: METADATA, control_passed: { metadata: 'x' } },
    automatic_events: { metadata: METADATA, automatic_events: [{ id: 'wamid.a', event_name: 'Purchase' }] },
    tracking_events: {
      metadata: METADATA,
      events: [{ tracking_token: 't', event_name: 'marketing_messages_link_click' }],
    },
    message_template_components_update: { message_template_id: 12345678, message_template_name: 'order' },
    template_category_update: {
      message_template_id: 12345678,
      new_category: 'MARKETING',
      previous_category: 'UTILITY',
    },
    template_correct_category_detection: { message_template_id: 12345678, category: 'UTILITY' },
    partner_solutions: {
      event: 'SOLUTION_CREATED',
      solution_id: '774485461512159',
      solution_status: 'INITIATED',
    },
    payment_configuration_update: {
      configuration_name: 'razorpay',
      provider_name: 'razorpay',
      status: 'Needs_Testing',
    },
    account_settings_update: { type: 'phone_number_settings', timestamp: '1770000000' },
    consumer_profile: { metadata: METADATA, contacts: [{ wa_id: '1' }] },
    group_lifecycle_update: { metadata: METADATA, groups: [{ type: 'group_create', group_id: 'g' }] },
    group_participants_update: {
      metadata: METADATA,
      groups: [{ type: 'group_participants_add', group_id: 'g' }],
    },
    group_settings_update: { metadata: METADATA, groups: [{ type: 'group_settings_update', group_id: 'g' }] },
    group_status_update: { metadata: METADATA, groups: [{ type: 'group_suspend', group_id: 'g' }] },
    business_status_update: { business_id: '1', event: 'COMPROMISED_NOTIFICATION' },
    phone_number_verification: { display_phone_number: '15550783881' },
  }).map(([field, value]) =>
    post(`the field ${field}`, field, { messaging_product: 'whatsapp', ...value }, field),
  ),
];
