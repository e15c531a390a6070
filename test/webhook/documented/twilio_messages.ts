// What Twilio documents about messages, conversations and tasks.

import type { Documented } from './request.ts';
import { ACCOUNT, form } from './twilio_form.ts';

const MESSAGE = {
  ...ACCOUNT,
  MessageSid: 'SM00000000000000000000000000000001',
  SmsSid: 'SM00000000000000000000000000000001',
  From: '+14158675309',
  To: '+18005551212',
};

export const MESSAGES: Documented[] = [
  form(
    'an inbound message',
    { ...MESSAGE, SmsStatus: 'received', Body: "it's me", NumMedia: '0', NumSegments: '1' },
    'message.received',
  ),
  ...[
    ...['accepted', 'scheduled', 'queued', 'sending', 'sent', 'delivered', 'undelivered', 'failed', 'read'],
    ...['canceled', 'partially_delivered'],
  ].map((MessageStatus) =>
    form(
      `a message that is ${MessageStatus}`,
      { ...MESSAGE, MessageStatus, SmsStatus: MessageStatus },
      `message.${MessageStatus}`,
    ),
  ),
  form(
    'a message in a conversation',
    {
      ...ACCOUNT,
      EventType: 'onMessageAdded',
      ConversationSid: 'CH1',
      MessageSid: 'IM1',
      Index: '1',
      Body: 'hello',
      Author: 'ann',
      DateCreated: '2026-02-24T10:00:00.000Z',
    },
    'onMessageAdded',
  ),
  ...['onConversationAdded', 'onParticipantAdded', 'onDeliveryUpdated', 'onConversationStateUpdated'].map(
    (EventType) =>
      form(EventType, { ...ACCOUNT, EventType, ConversationSid: 'CH1', Source: 'API' }, EventType),
  ),
  form(
    'an inbound message with a choice',
    {
      ...MESSAGE,
      MessageSid: 'SM2',
      SmsSid: 'SM2',
      SmsStatus: 'received',
      Body: 'Yes',
      ButtonText: 'Yes',
      OptOutType: 'STOP',
    },
    'message.received',
  ),
  form(
    'a task',
    {
      ...ACCOUNT,
      EventType: 'task.created',
      WorkspaceSid: 'WS1',
      TaskSid: 'WT1',
      TimestampMs: '1770000000000',
    },
    'task.created',
  ),
];
