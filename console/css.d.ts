declare module '*.css';
declare module '*.svg' {
  const url: string;
  export default url;
}
declare module 'swagger-ui-dist/swagger-ui-es-bundle.js' {
  export default function SwaggerUI(options: Readonly<Record<string, unknown>>): unknown;
}
