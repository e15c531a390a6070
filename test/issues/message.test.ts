import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { StackError } from '../../src/failure.ts';
import { type Alert, bodyOf, messageOf } from '../../src/issues/message.ts';
import { readAlertSettings } from '../../src/issues/settings.ts';

const ALERT: Alert = {
  id: 7,
  token: 'secret of the lease',
  what: 'issue_opened',
  subject: 'event orders order.paid',
  at: '2026-02-24T10:00:00Z',
  issue: {
    id: '5d41402a-bc4b-2a76-b971-9d911017c592',
    kind: 'event',
    lane: 'orders',
    type: 'order.paid',
    error: 'a < b & <!channel>',
    failures: 2,
    dead_letters: 1,
  },
};

describe('the message of an alert', () => {
  it('says what fails, where, and where to look', () => {
    const message = messageOf(ALERT, 'DB2', 'https://tickets.example.com/');
    assert.deepEqual(message, {
      id: 'DB2_7',
      what: 'issue_opened',
      text: 'New issue: 2 events of orders, order.paid: a < b & <!channel>',
      database: 'DB2',
      at: ALERT.at,
      url: 'https://tickets.example.com/issues/5d41402a-bc4b-2a76-b971-9d911017c592',
      issue: ALERT.issue,
    });
    assert.deepEqual(bodyOf(message, 'json'), message);
  });

  it('is one text for Slack, in which what an error holds is neither a link nor a call to a channel', () => {
    assert.deepEqual(bodyOf(messageOf(ALERT, 'DB2', 'https://tickets.example.com/'), 'slack'), {
      text: 'New issue: 2 events of orders, order.paid: a &lt; b &amp; &lt;!channel&gt; (DB2) <https://tickets.example.com/issues/5d41402a-bc4b-2a76-b971-9d911017c592|Open in Sluice>',
    });
  });

  it('of a mark is its subject, without an address where the server does not know its own', () => {
    const alert = { ...ALERT, what: 'secret_missing', subject: 'endpoint shop', issue: null } as const;
    const message = messageOf(alert, 'DB2', undefined);
    assert.deepEqual(message, {
      id: 'DB2_7',
      what: 'secret_missing',
      text: 'A secret is missing: endpoint shop',
      database: 'DB2',
      at: ALERT.at,
    });
    assert.deepEqual(bodyOf(message, 'slack'), { text: 'A secret is missing: endpoint shop (DB2)' });
  });
});

describe('the settings of alerts', () => {
  it('are none without an address', () => {
    assert.equal(readAlertSettings({ SLUICE_ALERT_FORMAT: 'slack' }), undefined);
  });
  it('are an address, a format and what signs', () => {
    const url = 'https://hooks.slack.com/services/T/B/x';
    assert.deepEqual(readAlertSettings({ SLUICE_ALERT_URL: url }), { url, format: 'json' });
    assert.equal(readAlertSettings({ SLUICE_ALERT_URL: url, SLUICE_ALERT_FORMAT: 'slack' })?.format, 'slack');
  });
  it('stop the server where they are wrong, without repeating the address', () => {
    const wrong = (env: NodeJS.ProcessEnv) => {
      try {
        readAlertSettings(env);
      } catch (error) {
        assert(error instanceof StackError);
        return error.message;
      }
      return assert.fail('it was taken');
    };
    assert.doesNotMatch(wrong({ SLUICE_ALERT_URL: 'ftp://x/secret' }), /secret/);
    const url = 'https://alerts.example.com';
    assert.match(
      wrong({ SLUICE_ALERT_URL: url, SLUICE_ALERT_FORMAT: 'xml' }),
      /SLUICE_ALERT_FORMAT is "xml"/,
    );
    assert.match(wrong({ SLUICE_ALERT_URL: url, SLUICE_ALERT_SECRET: 'short' }), /^SLUICE_ALERT_SECRET: /);
  });
});
