-- A switch of embedding models replaces the vectors, instead of filling a second set.
DROP VIEW nacre.other_turn_passages;
DROP TABLE nacre_rows.other_turn_passages;
DROP VIEW nacre.other_passages;
DROP TABLE nacre_rows.other_passages;
DROP VIEW nacre.other_passage_bits;
DROP TABLE nacre_rows.other_passage_bits;
DROP VIEW nacre.other_memory_vectors;
DROP TABLE nacre_rows.other_memory_vectors;
DROP VIEW nacre.other_embedding;
DROP TABLE nacre_rows.other_embedding;
