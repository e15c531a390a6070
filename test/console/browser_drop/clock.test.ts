import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { seatName } from '#core/tickets/words.ts';
import { ServerClock } from '../../../console/drop/clock.ts';
import { money, nameOf, shortTime, timeLeft } from '../../../console/drop/text.ts';

describe('the clock of the drop page', () => {
  it('is the server’s by the telling that came fastest, however wrong the local one is', () => {
    let local = 5_000;
    const clock = new ServerClock(() => local);
    // Sent at 1,000,000 and 300 ms on its way, then sent at 1,001,000 and 20 ms, then 900 ms.
    clock.told(1_000_000 - 300);
    local = 6_000;
    clock.told(1_001_000 - 20);
    local = 7_000;
    clock.told(1_002_000 - 900);
    assert.equal(clock.now(), 1_001_980);
  });

  it('follows a server whose clock was set back, after a while', () => {
    const clock = new ServerClock(() => 0);
    clock.told(90_000);
    for (let times = 0; times < 20; times++) clock.told(60_000);
    assert.equal(clock.now(), 60_000);
  });

  it('goes by the Date header until the server has told it better', () => {
    const clock = new ServerClock(() => 1_000);
    assert.equal(clock.now(), 1_000);
    clock.toldRoughly(50_000);
    assert.equal(clock.now(), 50_500);
    clock.told(50_020);
    assert.equal(clock.now(), 50_020);
  });
});

describe('the words of the drop page', () => {
  it('count down to one second and never show zero before the opening', () => {
    assert.deepEqual(timeLeft(1), { days: 0, hours: 0, minutes: 0, seconds: 1 });
    assert.deepEqual(timeLeft(0), { days: 0, hours: 0, minutes: 0, seconds: 0 });
    assert.deepEqual(timeLeft(90_061_000), { days: 1, hours: 1, minutes: 1, seconds: 1 });
    assert.equal(shortTime(timeLeft(61_000)), '01:01');
    assert.equal(shortTime(timeLeft(3_661_000)), '1:01:01');
    assert.equal(shortTime(timeLeft(90_000_000)), '1 d 1 h');
  });

  it('tell seats apart that were put on sale at the same moment', () => {
    const seats = ['01a1df6e-48da-704a-b6a2-1a4693750774', '01a1df6e-48da-704a-b6a2-1a4693750775'];
    assert.deepEqual(
      seats.map((seat) => seatName(null, seat)),
      ['9375 0774', '9375 0775'],
    );
  });

  it('count money as its provider does: cents, whole yen, and whole krónur in hundreds', () => {
    const digits = (text: string) => text.replace(/[^\d.,]/g, '');
    assert.equal(digits(money(2_500, 'eur')), '25.00');
    assert.equal(digits(money(2_500, 'jpy')), '2,500');
    assert.equal(digits(money(250_000, 'isk')), '2,500');
    assert.equal(digits(money(2_500, 'kwd')), '2.500');
  });

  it('make a name of a pool’s id', () => {
    assert.equal(nameOf('demo_concert_2026'), 'Demo Concert 2026');
  });
});
