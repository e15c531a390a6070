import { render } from 'preact';
import './console.css';
import { App } from './app.tsx';
import icon from './icon.svg';

const link = document.createElement('link');
link.rel = 'icon';
link.href = new URL(icon, import.meta.url).href;
document.head.append(link);

const app = document.getElementById('app');
if (app) render(<App />, app);
