CREATE OR REPLACE VIEW pet_owners AS SELECT p.name AS pet, o.name AS owner, '${note}' AS note FROM pets p JOIN people o ON o.id = p.owner;
