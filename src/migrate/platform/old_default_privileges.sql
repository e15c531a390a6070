-- How older Supabase projects start: whatever is created in public is open to every role of the API. Our
-- migrations must come out with the same rights under this and under the new, closed defaults.
alter default privileges in schema public grant all on tables to anon, authenticated, service_role;
alter default privileges in schema public grant all on functions to anon, authenticated, service_role;
alter default privileges in schema public grant all on sequences to anon, authenticated, service_role;
