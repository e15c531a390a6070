// The API for developers: Swagger UI draws /openapi.json. The page shows and does not send: a press on a button must not release
// a claim or add a pool.

import SwaggerUI from 'swagger-ui-dist/swagger-ui-es-bundle.js';
import 'swagger-ui-dist/swagger-ui.css';
import './docs.css';

const dark = matchMedia('(prefers-color-scheme: dark)');
const paint = (): boolean => document.documentElement.classList.toggle('dark-mode', dark.matches);
paint();
dark.addEventListener('change', paint);

SwaggerUI({
  url: '/openapi.json',
  domNode: document.getElementById('app'),
  deepLinking: true,
  docExpansion: 'list',
  filter: true,
  // Open schemas would be ten screens before the first operation.
  defaultModelsExpandDepth: 0,
  supportedSubmitMethods: [],
  // Swagger's own service would be sent the address of this server.
  validatorUrl: null,
});
