/**
 * Calls a SQL function by named arguments; a scalar comes back as rows with one column of the function's name. Each runtime
 * brings its own: Node over a connection, an Edge Function over PostgREST.
 */
export type CallFunction = <Row>(functionName: string, args: Record<string, unknown>) => Promise<Row[]>;
