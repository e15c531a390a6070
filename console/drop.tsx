// The buyer's page: /drop/:pool.

import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { createApi } from './drop/api.ts';
import { monotonic, ServerClock } from './drop/clock.ts';
import { About, Event } from './drop/event.tsx';
import { Left } from './drop/parts.tsx';
import { type Progress, Purchase } from './drop/purchase.ts';
import { mostSeats, type QuantityProps } from './drop/quantity.tsx';
import { Rosette } from './drop/rosette.tsx';
import { type Scene, sceneOf } from './drop/scene.ts';
import { SceneView } from './drop/scenes.tsx';
import { Sessions, type SignedIn } from './drop/session.ts';
import { SignIn, Who } from './drop/sign_in.tsx';
import { openStorage, Store } from './drop/store.ts';
import { hueOf, nameOf, seatsText, shortTime, timeLeft } from './drop/text.ts';
import { Watch, type Watched } from './drop/watch.ts';
import './drop.css';

const TICK_MS = 1_000;

const pool = decodeURIComponent(location.pathname.split('/')[2] ?? '');
const clock = new ServerClock(monotonic);
const storage = openStorage('localStorage');

let tellProgress: (progress: Progress) => void = () => undefined;
let tellWatched: (watched: Watched) => void = () => undefined;
let tellSignedIn: (signedIn: SignedIn) => void = () => undefined;
const sessions = new Sessions({
  storage: openStorage('sessionStorage'),
  shared: storage,
  now: () => clock.now(),
  onChange: (signedIn) => {
    tellSignedIn(signedIn);
    purchase.changeBuyer();
  },
});
const store = new Store(storage, pool, () => sessions.state.session?.userId);
const api = createApi(() => sessions.state.session?.token);
const watch = new Watch(pool, api, clock, (watched) => tellWatched(watched));
const purchase: Purchase = new Purchase({
  pool,
  store,
  api,
  now: () => clock.now(),
  opensAt: () => watch.opensAt,
  onChange: (progress) => {
    if (progress.kind === 'refused' && progress.code === 'auth_required') sessions.refused();
    tellProgress(purchase.progress);
  },
  goTo: (url) => location.assign(url),
});
/** A session does not stay in the address, nor in the history. */
function takeSession(): void {
  if (sessions.arrive(location.hash))
    history.replaceState(history.state, '', location.pathname + location.search);
}
takeSession();

/** The payment page sends people back with the claim in the address; it does not stay there. */
function takeReturn(): string | undefined {
  const claimId = new URLSearchParams(location.search).get('claim');
  if (claimId === null) return undefined;
  history.replaceState(history.state, '', location.pathname + location.hash);
  return purchase.returnTo(claimId) ? undefined : claimId;
}

function Page() {
  const [progress, setProgress] = useState<Progress>(purchase.progress);
  const [watched, setWatched] = useState<Watched>({ pool: undefined, isConnected: true });
  const [signedIn, setSignedIn] = useState<SignedIn>(sessions.state);
  const [isOnline, setOnline] = useState(navigator.onLine);
  const [wanted, setWanted] = useState(1);
  const [strange, setStrange] = useState<string>();
  const now = useClock();
  useEffect(() => {
    tellProgress = setProgress;
    tellWatched = setWatched;
    tellSignedIn = setSignedIn;
    const stop = start(setOnline);
    setStrange(takeReturn());
    return stop;
  }, []);
  useEffect(() => sessions.look(), [now]);

  const scene = sceneOf(progress, watched, signedIn.session !== undefined, now);
  const seen = typeof watched.pool === 'object' ? watched.pool : undefined;
  const details = seen?.details ?? undefined;
  const name = details?.title ?? nameOf(pool);
  const quantity = seen === undefined ? 1 : Math.min(wanted, mostSeats(seen));
  const choice: QuantityProps | undefined = seen && { pool: seen, quantity, onChange: setWanted };
  useEffect(() => {
    document.title = `${titleOf(scene, now)} · ${name}`;
  });
  return (
    <main data-scene={scene.kind}>
      <header class="poster">
        {details?.picture_url ? (
          <img class="picture" src={details.picture_url} alt="" referrerpolicy="no-referrer" />
        ) : (
          <Rosette text={pool} />
        )}
        <p class="badge">{BADGES[scene.kind]}</p>
        <h1>{name}</h1>
        {details && <Event details={details} />}
        {seen && <p class="sub">{seatsText(seen.capacity)}</p>}
      </header>
      <section class="panel" aria-label="Your ticket">
        {(!isOnline || !watched.isConnected) && scene.kind !== 'unreachable' && (
          <p class="banner" role="alert">
            {isOnline ? 'Connection lost. Reconnecting…' : 'You are offline.'} What you asked for is kept.
          </p>
        )}
        {strange !== undefined && (
          <p class="banner" role="alert">
            You come back from paying for a seat that this browser did not ask for. Open this page where you
            asked for it. Your payment is not lost: the organiser finds it by <b class="code">{strange}</b>.
          </p>
        )}
        <Who signedIn={signedIn} sessions={sessions} />
        <div class="scene">
          <SceneView
            name={name}
            scene={scene}
            now={now}
            choice={choice}
            signIn={(isGuest) => <SignIn api={api} sessions={sessions} isGuest={isGuest} />}
            onBuy={() => purchase.buy(quantity)}
            onPay={() => void purchase.pay()}
            onGiveBack={() => void purchase.giveBack()}
            onForget={() => purchase.forget()}
          />
        </div>
        {seen && scene.kind !== 'ticket' && <Left {...seen} />}
        {details?.text && <About text={details.text} />}
        <p class="sr-only" role="status">
          {announced(scene)}
        </p>
      </section>
    </main>
  );
}

/** A tick each second, on the second of the server's clock, so that the countdown moves as clocks do. */
function useClock(): number {
  const [now, setNow] = useState(clock.now());
  useEffect(() => {
    const timer = setTimeout(() => setNow(clock.now()), TICK_MS - (clock.now() % TICK_MS) + 1);
    return () => clearTimeout(timer);
  }, [now]);
  return Math.max(now, clock.now());
}

function start(setOnline: (isOnline: boolean) => void): () => void {
  const wake = () => {
    setOnline(navigator.onLine);
    if (document.visibilityState === 'hidden') return watch.rest();
    purchase.wake();
    // A ticket may have been taken back meanwhile, and late money may have bought other seats.
    void purchase.check();
    watch.wake();
  };
  // The payment page was left by the button for back: browsers show this page as it was.
  const onShow = ({ persisted }: PageTransitionEvent) => persisted && purchase.comeBack();
  const onStorage = ({ key }: StorageEvent) => {
    if (key === store.key || key === null) purchase.resume();
  };
  addEventListener('online', wake);
  addEventListener('offline', wake);
  addEventListener('storage', onStorage);
  addEventListener('hashchange', takeSession);
  addEventListener('pageshow', onShow);
  document.addEventListener('visibilitychange', wake);
  // Both ids are made now: two tabs that first made them when pressed at once would make two each.
  store.buyer();
  store.attempt();
  purchase.resume();
  void purchase.check();
  if (document.visibilityState === 'hidden') watch.rest();
  void watch.start();
  return () => {
    removeEventListener('online', wake);
    removeEventListener('offline', wake);
    removeEventListener('storage', onStorage);
    removeEventListener('hashchange', takeSession);
    removeEventListener('pageshow', onShow);
    document.removeEventListener('visibilitychange', wake);
  };
}

const BADGES: Readonly<Record<Scene['kind'], string>> = {
  loading: 'Live drop',
  unreachable: 'Live drop',
  unknown: 'Live drop',
  countdown: 'Coming up',
  open: 'On sale',
  pay: 'Seat held',
  paying: 'Seat held',
  held: 'Seat held',
  ticket: 'Confirmed',
  ended: 'On sale',
  refund: 'Refunded',
  voided: 'Taken back',
  sign_in: 'Live drop',
  sold_out: 'Sold out',
  closed: 'Closed',
  refused: 'Live drop',
};

/** Read out when the scene changes; the countdown is not read out every second. */
const ANNOUNCED: Readonly<Record<Scene['kind'], string>> = {
  loading: '',
  unreachable: 'The box office cannot be reached.',
  unknown: 'This drop does not exist.',
  countdown: 'The drop has not opened yet.',
  open: 'On sale now.',
  pay: 'A seat is held for you until you have paid.',
  paying: 'Your payment is being confirmed.',
  held: 'A seat is held for you. Your ticket is being written.',
  ticket: 'Your ticket is confirmed.',
  ended: 'Your seat was given back.',
  refund: 'Your money goes back.',
  voided: 'Your ticket was taken back.',
  sign_in: 'Sign in to buy here.',
  sold_out: 'Sold out.',
  closed: 'The drop is closed.',
  refused: 'That did not work.',
};

function announced(scene: Scene): string {
  if (scene.kind === 'open' && scene.solved !== undefined)
    return 'Your device solves a puzzle before it asks for your seat.';
  if (scene.kind === 'held' && scene.claim.ending) return 'Your seat is being given back.';
  return ANNOUNCED[scene.kind];
}

function titleOf(scene: Scene, now: number): string {
  if (scene.kind === 'countdown') return shortTime(timeLeft(scene.opensAt - now));
  return BADGES[scene.kind];
}

document.documentElement.style.setProperty('--hue', String(hueOf(pool)));
const app = document.getElementById('app');
if (app) render(<Page />, app);
